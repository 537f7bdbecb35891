"""Run a private server: on a free loopback port, with a new database."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import loopwright as lw

START_SECS = 60.0
STOP_SECS = 15.0


@dataclass(frozen=True)
class Server:
    """A running server, its root process, and the time to its first answer."""

    url: str
    pid: int
    start_secs: float


@contextlib.contextmanager
def serving(
    database: Path | None = None,
    port: int | None = None,
    command: str = "serve",
    options: Sequence[str] = (),
) -> Iterator[Server]:
    """Run `loopwright serve` while the body runs; if that fails, print the output of the server.

    Args:
        database: A SQLite file to serve; by default a new one.
        port: The port to serve on; by default a free one.
        command: The command of `loopwright`; `api` runs no jobs.
        options: Further options of the command.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-") as directory:
        log = Path(directory, "serve.log")
        port = port or free_port()
        program = [sys.executable, "-m", "loopwright", command, "--port", str(port)]
        file = database or Path(directory, "loopwright.db")
        started = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*program, "--db", f"sqlite:///{file}", *options], stdout=output, stderr=output
            )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url, process)
            yield Server(url, process.pid, time.monotonic() - started)
        except BaseException:
            sys.stderr.write(log.read_text(encoding="utf-8", errors="replace")[-5000:])
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers.

    Raises:
        RuntimeError: If its process ends.
        ServerUnreachableError: If it does not answer within a minute.
    """
    deadline = time.monotonic() + START_SECS
    with lw.Client(url, attempts=1) as client:
        while True:
            try:
                client.health()
                return
            except lw.ServerUnreachableError:
                if process.poll() is not None:
                    raise RuntimeError(f"the server ended with code {process.returncode}") from None
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)
