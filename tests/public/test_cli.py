"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import loopwright as lw
from compiler.runtime.measurement import Measurement
from examples.serving import Server, free_port
from loopwright.cli.main import app
from loopwright.local import tuning
from service.wire.models import JobState
from tuner.loop.search_result import NothingMeasuredError

SCRIPT = Path(__file__).parents[2] / "examples" / "mm_relu.script"
TARGET = "cpu -num-cores=1"


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


def test_a_workload_is_tuned_here_and_its_kernel_written(no_server: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    ran = CliRunner().invoke(
        app,
        ["tune", "matmul:16,16,16", "--target", TARGET, "--trials", "4", "--json", "-o", str(path)],
    )
    assert ran.exit_code == 0, ran.stderr
    assert f"no server responds at {no_server}: tuning in this process" in ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["num_measured"] == 4
    assert outcome["best_secs"] <= outcome["default_secs"]
    a = np.ones((16, 16), "float32")
    c = np.empty_like(a)
    lw.Module.load(path)(a, a, c)
    np.testing.assert_array_equal(c, a @ a)


def test_a_script_file_is_tuned_on_a_server_and_found_there(server: Server) -> None:
    at = ("--url", server.url)
    ran = loopwright("tune", str(SCRIPT), "--target", TARGET, "--trials", "4", *at)
    assert ran.returncode == 0, ran.stderr
    assert "GFLOP/s" in ran.stdout
    job = ran.stderr.split()[1]

    best = loopwright("best", str(SCRIPT), "--target", TARGET, *at, "--json")
    assert json.loads(best.stdout)["job_id"] == job
    shown = loopwright("best", str(SCRIPT), "--target", TARGET, *at)
    assert "get_block" in shown.stdout or "default" in shown.stdout

    jobs = loopwright("jobs", *at, "--json", "--limit", "1000")
    assert job in [entry["id"] for entry in json.loads(jobs.stdout)]
    assert job in loopwright("jobs", *at, "--limit", "1000").stdout

    trials = loopwright("trials", job, *at, "--json")
    assert [trial["number"] for trial in json.loads(trials.stdout)] == [0, 1, 2, 3]
    assert "default" in loopwright("trials", job, *at).stdout


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
        (("tune", "matmul:8,8,8", "--trials", "0"), "--trials"),
        (("tune", "matmul:8,8,8", "--trials", "1000000"), "--trials"),
        (("tune", "matmul:8,8,8", "--strategy", "luck"), "luck"),
        (("tune", "matmul:8,8,8", "--rule", "of_thumb"), "unknown schedule rule 'of_thumb'"),
        (("tune", "matmul:8,8,8", "--url", "nowhere"), "looks like http://"),
        (("trials", "not-an-id"), "'not-an-id' is not the id of a job"),
        (("tun", "relu:8"), "did you mean 'tune'?"),
        (("tune", "relu:8", "--trails", "2"), "--trials"),
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


def test_a_kernel_that_could_not_be_written_is_told_before_tuning() -> None:
    ran = loopwright("tune", "matmul:8,8,8", "-o", "no/such/folder/kernel")
    assert ran.returncode == 2
    assert "there is no such directory" in ran.stderr


@pytest.mark.usefixtures("no_server")
def test_tuning_that_is_interrupted_shows_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = lw.Schedule(lw.ops.from_spec("matmul:8,8,8")).trace

    def tune(*_: object, on_trial: Callable[[lw.Trial], None], **__: object) -> None:
        for number, secs in ((1, 1.0), (0, 2.0)):
            on_trial(lw.Trial(number, "sketch", trace, Measurement(run_secs=(secs,))))
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "--trials", "9", "--json"])
    assert ran.exit_code == 130
    assert "interrupted after 2 of 9 trials; the best so far:" in ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["was_interrupted"]
    assert (outcome["default_secs"], outcome["best_secs"]) == (2.0, 1.0)


@pytest.mark.usefixtures("no_server")
def test_tuning_that_is_interrupted_at_once_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def tune(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "--trials", "9"])
    assert ran.exit_code == 130
    assert "interrupted after 0 of 9 trials: no correct candidate yet" in ran.stderr


@pytest.mark.usefixtures("no_server")
def test_tuning_several_that_is_interrupted_at_once_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tune(*_: object, **__: object) -> None:
        raise NothingMeasuredError("tuning matmul was stopped before anything was measured")

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "relu:8"])
    assert ran.exit_code == 130
    assert "interrupted: tuning matmul was stopped before anything was measured" in ran.stderr


def test_a_job_that_others_cancelled_before_anything_ran_says_so(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lw.Client(server.url) as client:
        job = client.tune("relu:23", target=TARGET, trials=1).wait()
    gone = job.model_copy(update={"state": JobState.CANCELLED, "best_secs": None})
    monkeypatch.setattr(lw.JobHandle, "wait", lambda _: gone)
    ran = CliRunner().invoke(app, ["tune", "relu:29", "--trials", "1", "--url", server.url])
    assert ran.exit_code == 1
    assert ran.stderr.endswith(f"error: job {job.id} is cancelled: no candidate ran\n")


def test_what_is_piped_has_a_line_for_each_job(server: Server) -> None:
    with lw.Client(server.url) as client:
        job = client.tune("matmul:8,8,8", target=TARGET, trials=1)
        job.wait()
    ran = CliRunner(env={"COLUMNS": "40"}).invoke(app, ["jobs", "--url", server.url])
    [line] = [line for line in ran.stdout.splitlines() if str(job.id) in line]
    assert "matmul 8 x 8 x 8" in line


def test_a_server_that_is_not_there_is_exit_code_3() -> None:
    ran = loopwright("jobs", "--url", f"http://127.0.0.1:{free_port()}")
    assert ran.returncode == 3
    assert "loopwright serve" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_wrong_protocol_gets_the_advice_that_fits(server: Server) -> None:
    """The server runs: to start one would not help."""
    ran = CliRunner().invoke(app, ["jobs", "--url", server.url.replace("http:", "https:")])
    assert ran.exit_code == 3
    assert ran.stderr.endswith(f"try {server.url}\n")


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


def test_what_was_not_tuned_is_exit_code_1(server: Server) -> None:
    ran = loopwright("best", "relu:54321", "--url", server.url)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")


def test_a_second_server_on_a_port_says_so(server: Server, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    ran = loopwright("serve", "--port", port, "--db", f"sqlite:///{tmp_path}/x.db")
    assert ran.returncode == 1
    assert port in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    ran = loopwright("serve", "--port", str(free_port()), "--db", f"sqlite:///{path}")
    assert ran.returncode == 1
    assert "notes.txt" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert path.read_text() == "not a database, " * 100


def test_beyond_loopback_a_token_is_needed(tmp_path: Path) -> None:
    ran = loopwright("serve", "--host", "0.0.0.0", "--db", f"sqlite:///{tmp_path}/x.db")
    assert ran.returncode == 1
    assert "token" in ran.stderr


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    shown = loopwright("--help").stdout
    assert all(name in shown for name in ("serve", "tune", "best", "jobs", "trials", "Exit codes"))
    assert loopwright("--version").stdout.strip() == lw.__version__


def test_a_paragraph_of_the_help_is_folded_at_the_width_of_the_terminal() -> None:
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["import", "--help"]).stdout
    assert "The records go to a server, or with --db directly to a database." in shown
