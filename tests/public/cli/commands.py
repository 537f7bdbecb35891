"""Run a command of the command line as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from examples.serving import Server, free_port
from loopwright.cli.main import app

OPERATOR = "matmul:16,16,24"
TARGET = "cpu -num-cores=1"
SCRIPT = Path(__file__).parents[3] / "examples" / "mm_relu.script"
UNREACHABLE = f"http://127.0.0.1:{free_port()}"


def run(*args: str, server: Server | None = None, stdin: bytes | None = None) -> Any:
    env = {"COLUMNS": "140"} | ({} if server is None else {"LOOPWRIGHT_URL": server.url})
    return CliRunner(env=env).invoke(app, args, input=stdin)


def loopwright(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("LOOPWRIGHT_")}
    return subprocess.run(
        [sys.executable, "-m", "loopwright", *args],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**env, "COLUMNS": "140", "NO_COLOR": "1"},
        cwd=cwd,
    )
