"""The guided tour does what it says."""

from __future__ import annotations

import pytest

from examples import tour

TEXT = tour.DOCUMENT.read_text(encoding="utf-8")


def test_every_piece_of_code_prints_what_the_tour_shows() -> None:
    """After a change of what is printed: `python -m examples.tour --update`."""
    namespace = tour.fresh_namespace()
    for step in tour.steps(TEXT):
        printed = tour.run(step, namespace)
        if step.shown is not None:
            assert printed == step.shown, f"docs/tour.md, the code of line {step.line}"


def test_what_is_shown_and_not_checked_comes_from_a_clock() -> None:
    assert {kind for kind, _ in tour.blocks(TEXT)} == {"python", "text", "console"}
    assert all(" ms" in block for kind, block in tour.blocks(TEXT) if kind == "console")


def test_the_document_is_updated_to_what_the_code_prints() -> None:
    text = "Add:\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\nDone.\n"
    assert tour.updated(text) == text.replace("3\n", "2\n")


def test_an_error_names_the_line_of_the_document() -> None:
    (step,) = tour.steps("Divide:\n\n```python\nx = 0\n1 / x\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        tour.run(step, tour.fresh_namespace())
    assert caught.traceback[-1].lineno + 1 == 5
