"""What a newcomer sees first: `make demo`, then `loopwright serve`, on a terminal of any width."""

from __future__ import annotations

import os
import pty
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

import loopwright as lw
from examples.serving import Server

ROOT = Path(__file__).parents[2]

# The table and the last words of the demo, without what takes it its minute.
DEMO = """
import sys
from pathlib import Path
from rich.console import Console
from examples import demo
from loopwright.tables import FittedTable

results = [demo.Result(case, 1.0, 0.5, 0.75, 100.0, 1e-7, 200, 25.0) for case in demo.cases()]
for width in map(int, sys.argv[1:]):
    Console(width=width).print(FittedTable(demo.make_table(results, 100.0)))
    print("---")
demo.say_what_is_next(Console(width=40), Path("demo.db"))
"""


def on_a_terminal(*command: str, columns: int) -> str:
    """Return what a command prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "xterm"},
    )
    os.close(theirs)
    text = b""
    with suppress(OSError):  # the end of a terminal
        while read := os.read(ours, 1 << 16):
            text += read
    os.close(ours)
    assert process.wait() == 0, text
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r\n", "\n")


def test_the_demo_builds_the_dashboard() -> None:
    """Of a tree in which it was not built."""
    said = subprocess.run(
        ["make", "--dry-run", "demo", "DASHBOARD=no/such/page.html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "dashboard/npm.py build" in said.stdout


def test_the_table_of_the_demo_fits_and_the_next_command_is_said() -> None:
    widths = (40, 60, 80, 120, 200)
    ran = subprocess.run(
        [sys.executable, "-c", DEMO, *map(str, widths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *tables, said = ran.stdout.split("---\n")
    for width, table in zip(widths, tables, strict=True):
        assert max(map(len, table.splitlines())) <= width
        for whole in ("conv2d 64x56x56, 3x3", "1000.000", "x default", "% of peak", "max error"):
            assert whole in table
    assert "serve --db sqlite:///demo.db" in said
    assert "open http://127.0.0.1:8080\n" in said


def test_a_demo_does_not_touch_a_database_that_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE jobs (id)")
        database.commit()
        ran = subprocess.run(
            [sys.executable, "-m", "examples.demo", "--db", str(path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert database.execute("SELECT * FROM jobs").fetchall() == []
    assert ran.returncode == 1
    assert "Stop the server that uses it" in ran.stderr


def test_a_server_without_its_dashboard_says_the_command_that_builds_it() -> None:
    code = (
        "from pathlib import Path; import service.processes.serve as s;"
        "s.is_built = lambda: False; s._print_url('http://127.0.0.1:8080')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"run: make -C {ROOT} dashboard" in ran.stdout


@pytest.mark.parametrize("columns", [40, 80])
def test_the_list_of_jobs_fits_the_terminal(server: Server, columns: int) -> None:
    with lw.Client(server.url) as client:
        job = client.tune("matmul:8,8,8", target="cpu -num-cores=1", max_trials=1)
        job.wait()
    command = (sys.executable, "-m", "loopwright", "jobs", "--url", server.url)
    lines = on_a_terminal(*command, columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert any(str(job.id) in line for line in lines)
    assert any("matmul 8 x 8 x 8" in line for line in lines)
