"""The list of commands, which imports none of them."""

import json
import subprocess
import sys

import pytest

from loopwright.cli.main import COMMANDS, load_command

LIST = """
import contextlib, io, json, sys
from loopwright.cli.main import app
shown = io.StringIO()
with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
    app(["--help"])
loaded = [name for name in sys.modules if name.startswith(("loopwright.cli.", "service", "tuner"))]
print(json.dumps([shown.getvalue(), loaded]))
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_shows_the_first_paragraph_of_the_help(name: str) -> None:
    assert load_command(name).help.split("\n\n")[0] == COMMANDS[name]


def test_the_list_imports_no_command() -> None:
    ran = subprocess.run([sys.executable, "-c", LIST], capture_output=True, text=True, check=True)
    shown, loaded = json.loads(ran.stdout)
    assert all(name in shown for name in COMMANDS)
    modules = {name.rsplit(".", 1)[-1].rstrip("_") for name in loaded}
    assert not modules & COMMANDS.keys()
