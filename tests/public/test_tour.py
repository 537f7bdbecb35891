"""The tutorial prints what it shows."""

from __future__ import annotations

import pytest

from examples import tour


@pytest.mark.parametrize("page", tour.PAGES)
def test_every_piece_of_code_prints_what_the_page_shows(page: str) -> None:
    """After a change of the output: `python -m examples.tour PAGE --update`."""
    text = tour.PAGES[page].read_text(encoding="utf-8")
    namespace = tour.fresh_namespace()
    for step in tour.steps(text):
        printed = tour.run(step, namespace)
        if step.shown is not None:
            assert printed == step.shown, f"docs/{page}.md, the code of line {step.line}"


def test_what_is_shown_and_not_checked_comes_from_a_clock() -> None:
    texts = [page.read_text(encoding="utf-8") for page in tour.PAGES.values()]
    blocks = [block for text in texts for block in tour.blocks(text)]
    assert {kind for kind, _ in blocks} == {"python", "text", "console"}
    assert all(" ms" in block for kind, block in blocks if kind == "console")


def test_the_document_is_updated_to_what_the_code_prints() -> None:
    text = "Add:\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\nDone.\n"
    assert tour.updated(text) == text.replace("3\n", "2\n")


def test_an_error_names_the_line_of_the_document() -> None:
    (step,) = tour.steps("Divide:\n\n```python\nx = 0\n1 / x\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        tour.run(step, tour.fresh_namespace())
    assert caught.traceback[-1].lineno + 1 == 5
