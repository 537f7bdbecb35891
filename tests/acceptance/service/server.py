"""A private `loopwright serve` for a test, and ways to stop and kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.patience import PATIENCE_SECS


@dataclass(frozen=True)
class Server:
    """A running server and a client of it."""

    process: subprocess.Popen[str]
    http: httpx2.Client
    log: Path

    def submit(self, workload: str, max_trials: int, **more: Any) -> str:
        """Queue a job and return its id."""
        request = {"workload": {"operator": workload}, "max_trials": max_trials, **more}
        response = self.http.post("/jobs", json=request)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.http.get(f"/jobs/{job_id}").raise_for_status().json())

    def trials(self, job_id: str) -> list[dict[str, Any]]:
        params = {"limit": 500}
        return list(self.http.get(f"/jobs/{job_id}/trials", params=params).json()["items"])

    def wait(self, job_id: str, *, measured: int | None = None) -> dict[str, Any]:
        """Wait until the job ends, or has measured some number of trials."""
        deadline = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < deadline:
            job = self.job(job_id)
            if job["state"] in {"succeeded", "failed", "cancelled"}:
                return job
            if measured is not None and job["num_measured"] >= measured:
                return job
            time.sleep(0.05)
        raise AssertionError(f"job {job_id} is late: {job}\n{self.log.read_text()[-5000:]}")

    def tree(self) -> list[psutil.Process]:
        """Return all processes below the server."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> list[psutil.Process]:
        """Kill the server with SIGKILL; return its former child processes."""
        below = self.tree()
        self.process.kill()
        self.process.wait()
        return below

    def stop(self) -> int:
        """Stop the server with a signal, as an operator does; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECS)


PROGRAM = ("-m", "loopwright")


def command(
    database: Path, *options: str, part: str = "serve", program: Sequence[str] = PROGRAM
) -> list[str]:
    """Return the command line of a server, or of its API alone, on any free port."""
    url = f"sqlite:///{database}"
    return [sys.executable, *program, part, "--port", "0", "--db", url, *options]


@contextmanager
def serving(
    database: Path, *options: str, part: str = "serve", program: Sequence[str] = PROGRAM
) -> Iterator[Server]:
    """Run a server on `database` while the body runs."""
    log = database.with_suffix(f".{time.monotonic_ns()}.log")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command(database, *options, part=part, program=program),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    assert process.stdout is not None
    below: list[psutil.Process] = []
    try:
        line = process.stdout.readline()
        assert "http://" in line, log.read_text()
        url = line.split()[-1]
        with httpx2.Client(base_url=f"{url}/api/v1", timeout=30.0) as http:
            server = Server(process, http, log)
            yield server
            if process.poll() is None:
                below = server.tree()
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
        _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECS)
        for orphan in alive:
            orphan.kill()
    assert not alive, f"outlived the server: {alive}"


@contextmanager
def running(folder: Path, part: str, *options: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run a part of the service while the body runs."""
    with (folder / f"{part}.{time.monotonic_ns()}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwright", part, *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
        )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECS)
        process.stdout.close()


@contextmanager
def coordinating(database: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a coordinator on `database` while the body runs."""
    db = f"sqlite:///{database}"
    with running(database.parent, "coordinator", "--db", db, *options) as process:
        assert process.stdout is not None
        assert "is running" in process.stdout.readline()
        yield process
