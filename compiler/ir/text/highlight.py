"""Show programs in colour: in a terminal, and in a notebook."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

# The HTML around the text in a notebook; long lines scroll.
_HTML = (
    '<pre style="overflow-x:auto;line-height:normal">'
    '<code style="font-family:inherit">{code}</code></pre>'
)
# Remove backgrounds, because the page has its own, dark or light.
_SURROUNDINGS = re.compile(
    r"(?:; )?(?:(?:text-decoration|background)-color: #[0-9a-f]{6}|color: #000000)"
)
_TERMINAL_THEME = "ansi_dark"  # the colours of the terminal's theme
_PAGE_THEME = "friendly"


def show(text: str) -> None:
    """Write a script to the output: plain to a file or a pipe, else in colour."""
    if _in_notebook():
        notebook = import_module("IPython.display")  # installed only with notebooks
        notebook.display({"text/plain": text, "text/html": html(text)}, raw=True)
    elif _takes_colours():
        from rich.console import Console  # noqa: PLC0415 (heavy, and most programs show nothing)

        Console(file=sys.stdout).print(_coloured(text, _TERMINAL_THEME), end="", soft_wrap=True)
    else:
        sys.stdout.write(text)


def html(text: str) -> str:
    """Return a script as HTML in colour."""
    from rich.console import Console  # noqa: PLC0415

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        # Without this, rich would display the recorded text in a notebook a second time.
        console = Console(
            record=True,
            file=nowhere,
            width=1_000_000,
            color_system="truecolor",
            force_jupyter=False,
        )
        console.print(_coloured(text, _PAGE_THEME), end="", soft_wrap=True)
        page = console.export_html(inline_styles=True, code_format=_HTML)
    return _SURROUNDINGS.sub("", page)


def _coloured(text: str, theme: str) -> Text:
    from rich.syntax import Syntax  # noqa: PLC0415

    return Syntax("", "python", theme=theme, background_color="default").highlight(text)


def _takes_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.getenv("TERM") != "dumb"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
