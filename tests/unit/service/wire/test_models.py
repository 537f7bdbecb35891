from __future__ import annotations

import subprocess
import sys

from service.wire.models import JobState, Page
from service.wire.problems import problem_from


def test_a_response_of_a_newer_server_is_read() -> None:
    page = Page[int].model_validate({"items": [1], "next_cursor": None, "total": 1})
    assert page.items == (1,)


def test_the_states_that_are_final() -> None:
    assert [state for state in JobState if not state.is_final] == [
        JobState.QUEUED,
        JobState.RUNNING,
    ]


def test_what_is_no_problem_document_is_made_one() -> None:
    assert problem_from({"detail": 3}, status=500, title="Error").title == "Error"
    assert problem_from({"title": "t", "errors": 3}, status=500, title="Error").title == "Error"
    assert problem_from("gateway", status=502, title="Bad").detail == "gateway"
    assert problem_from({"title": "t", "status": 404}, status=404, title="").title == "t"


def test_the_models_load_nothing_but_pydantic() -> None:
    code = (
        "import sys; before = set(sys.modules); import service.wire.models;"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numpy", "llvmlite", "fastapi", "sqlalchemy", "httpx2", "rich", "compiler", "tuner"}
    assert not heavy.intersection(loaded)
    assert "pydantic" in loaded
