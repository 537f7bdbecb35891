"""Golden files: expected texts, which `--update-golden` rewrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Golden = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files of the tests that run, instead of comparing with them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the golden file of the test: `<test>.txt` in a folder beside it.

    The file of a case of a parametrized test is `<test>/<case>.txt`.
    """
    # The option is unknown when pytest was not started on this folder.
    is_update = request.config.getoption("--update-golden", default=False)
    folder = Path(request.path).with_suffix("")
    test, _, case = request.node.name.removeprefix("test_").rstrip("]").partition("[")
    path = folder / test / f"{case}.txt" if case else folder / f"{test}.txt"

    def check(text: str) -> None:
        if is_update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"no golden file {path.name}: run pytest with --update-golden"
        assert text == path.read_text()

    return check
