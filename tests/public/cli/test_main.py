"""The command line as a whole: help, mistakes, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import psutil
import pytest
from typer.testing import CliRunner

import loopwright as lw
from compiler.executor.cores import available_cores
from examples.serving import Server
from loopwright.cli.main import app
from tests.public.cli.commands import SCRIPT, loopwright

# As from a terminal: a shell has what it starts in the background ignore Ctrl-C.
LOOPWRIGHT = """
import signal
import loopwright_start
signal.signal(signal.SIGINT, signal.default_int_handler)
loopwright_start.main()
"""


@contextmanager
def running(*args: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command; it does not outlast the body."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", LOOPWRIGHT, *args]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_is_heeded_while_the_program_is_still_loaded(tmp_path: Path) -> None:
    """It is amid the first of the libraries that take long."""
    slow = "import time\nprint('loading', flush=True)\ntime.sleep(600)\n"
    (tmp_path / "numpy.py").write_text(slow)
    with running("jobs", env={**os.environ, "PYTHONPATH": str(tmp_path)}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"interrupted\n")
        assert process.returncode == 130


@pytest.mark.skipif(available_cores() < 2, reason="this host has no second core")
def test_ctrl_c_from_a_terminal_ends_a_compilation_in_one_line(tmp_path: Path) -> None:
    """A terminal sends it to all processes of the group."""
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    options = ("--target", "cpu -num-cores=1", "-o", f"{tmp_path}/a.lwm")
    command = ("compile", str(model), *options)
    with running(*command, process_group=0) as process:
        while not (children := psutil.Process(process.pid).children()):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"interrupted\n")
        assert process.returncode == 130
    assert not any(child.is_running() for child in children)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_any_command_in_one_line(tmp_path: Path) -> None:
    with running("import", "-", "--db", f"sqlite:///{tmp_path}/a") as process:
        assert process.stdin is not None
        # More than a pipe holds: the command has begun to read it.
        process.stdin.write(bytes(1 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"interrupted\n")
        assert process.returncode == 130


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("tune", "matmull:8,8,8"), "did you mean matmul"),
        (("tune", ""), "a workload is missing"),
        (("tune", "no/such/file.py"), "the script no/such/file.py cannot be read"),
        (("tune", "matmul:8,8,8", "--target", "cpu -mcpu=nothing"), "nothing"),
        (("tune", "matmul:8,8,8", "--max-trials", "0"), "--max-trials"),
        (("tune", "matmul:8,8,8", "--max-trials", "1000000"), "--max-trials"),
        (("tune", "matmul:8,8,8", "--strategy", "luck"), "luck"),
        (("tune", "matmul:8,8,8", "--rule", "of_thumb"), "unknown schedule rule 'of_thumb'"),
        (("tune", "matmul:8,8,8", "--url", "nowhere"), "looks like http://"),
        (("trials", "not-an-id"), "'not-an-id' is not the id of a job"),
        (("tun", "relu:8"), "did you mean 'tune'?"),
        (("tune", "relu:8", "--trails", "2"), "--max-trials"),
        (("jobs", "--state", "asleep"), "asleep"),
    ],
)
def test_a_mistake_is_told_in_words_and_exit_code_2(args: tuple[str, ...], words: str) -> None:
    ran = CliRunner(env={"COLUMNS": "140"}).invoke(app, args)
    assert ran.exit_code == 2
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_mistake_in_a_script_is_shown_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.script"
    path.write_text(SCRIPT.read_text(encoding="utf-8").replace("A[vi, vk]", "A[vi, vl]"))
    ran = loopwright("tune", str(path))
    assert ran.returncode == 2
    place, quoted, carets = ran.stderr.splitlines()[:3]
    assert place.startswith(f"error: {path}:18:")
    assert "vl" in place
    assert quoted.index("vl") == carets.index("^")


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_without_the_source(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def workers(_: lw.Client) -> tuple[()]:
        warnings.warn("using the answer of 3 h ago", lw.StaleAnswerWarning, stacklevel=1)
        return ()

    monkeypatch.setattr(lw.Client, "workers", workers)
    ran = CliRunner().invoke(app, ["workers", "--url", server.url])
    assert (ran.exit_code, ran.stderr) == (0, "warning: using the answer of 3 h ago\n")


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    shown = loopwright("--help").stdout
    assert all(name in shown for name in ("serve", "tune", "best", "jobs", "trials", "Exit codes"))
    assert loopwright("--version").stdout.strip() == lw.__version__


def test_a_paragraph_of_the_help_is_folded_at_the_width_of_the_terminal() -> None:
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["import", "--help"]).stdout
    assert "The records go to a server, or with --db directly to a database." in shown
