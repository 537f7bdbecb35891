from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from compiler import ops
from compiler.ir.core.program import IRModule

FUNC = ops.mm_relu(4, 5, 6)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, **env: str) -> str:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **env}.items():
        monkeypatch.setenv(name, value)
    FUNC.show()
    return terminal.getvalue()


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    FUNC.show(dialect="old")
    assert capsys.readouterr().out == FUNC.script("old")


def test_a_terminal_gets_colours_and_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_on_a_terminal(monkeypatch)
    assert "\x1b[" in shown
    assert len(shown.splitlines()) == len(FUNC.script().splitlines())


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_may_want_no_colours(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    assert shown_on_a_terminal(monkeypatch, **env) == FUNC.script()


def test_a_notebook_gets_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=None)  # type: ignore[attr-defined]
    display.HTML = str  # type: ignore[attr-defined]
    display.display = lambda data, raw: shown.append(data["text/html"])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    FUNC.show()
    assert shown == [FUNC._repr_html_()]
    assert shown[0].startswith("<pre")


def test_pages_escape_what_they_show() -> None:
    page = IRModule((FUNC.with_attr("note", "<script>"),))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
