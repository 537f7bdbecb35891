"""Jobs run while faults hit every part of the stack of `docker-compose.yml`: `make chaos`.

The faults follow from a seed: killed, stopped and restarted processes, lost sessions of the
database, partitions, full and slow disks, wrong clocks. At the end all faults are over, every job
succeeds, and the history of the database is checked by a model (`history.py`). Meanwhile an SQLite
database loses its power (`power_loss.py`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Self

import httpx2
import numpy as np

from compiler.driver import build
from compiler.ops.spec import from_spec
from compiler.schedule.trace.trace import Trace
from tests.acceptance.chaos import history, power_loss
from tests.acceptance.chaos.faults import PARTS, Injector
from tests.acceptance.chaos.shim import find_compiler
from tests.acceptance.deploy.stack import Stack, running
from tests.patience import PATIENCE_SECS
from workers.logs import configure_logs

TARGET = "cpu -num-cores=1"
_ROWS = (16, 24, 32, 48)
_COLUMNS = (16, 32, 40)
_MAX_OPEN = 5
"""Jobs in the queue and running; more would only wait."""
_LOOK_SECS = 0.2
_OPEN = {"queued", "running"}
_SECS_PER_FAULT = 1.7
_LOCKS_OF_DASK = {"purge.lock", "global.lock"}
"""Files of a folder that all processes of a host share: they are empty, and stay."""
_CACHE = Path("loopwright")
"""The folder of files that are kept between runs, in `/tmp` of a container (`Dockerfile`)."""


class Load:
    """Submits jobs until it is stopped, each again and again until it is accepted."""

    def __init__(self, http: httpx2.Client, seed: int, prefix: str) -> None:
        self.jobs: dict[str, str] = {}
        """The operator of each job, by its id."""
        self.problems: list[str] = []
        self._http = http
        self._rng = Random(seed)
        self._prefix = prefix
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait_for_ends(self) -> list[dict[str, Any]]:
        """Return all jobs once they have ended; it may take long if trials are measured."""
        newest, changed_at = -1, time.monotonic()
        while True:
            jobs = [self._read(job_id) for job_id in self.jobs]
            if not any(job["state"] in _OPEN for job in jobs):
                return jobs
            measured = sum(job["num_measured"] for job in jobs)
            if measured != newest:
                newest, changed_at = measured, time.monotonic()
            still_open = [job for job in jobs if job["state"] in _OPEN]
            assert time.monotonic() - changed_at < PATIENCE_SECS, still_open
            time.sleep(_LOOK_SECS)

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_SECS):
            if self._num_open() < _MAX_OPEN:
                self._submit()

    def _submit(self) -> None:
        operator = f"matmul:{self._rng.choice(_ROWS)},{self._rng.choice(_COLUMNS)},32"
        body = {
            "workload": {"operator": operator},
            "target": TARGET,
            "max_trials": self._rng.choice((8, 16, 24)),
            "strategy": "random",
            "seed": len(self.jobs),
            "warm_start": False,
        }
        headers = {"Idempotency-Key": f"{self._prefix}-{len(self.jobs)}"}
        deadline = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < deadline:
            answer = self._ask("POST", "/api/v1/jobs", json=body, headers=headers)
            if answer is not None and answer.status_code in {200, 201}:
                self.jobs[answer.json()["id"]] = operator
                return
            refused = answer is not None and answer.status_code < 500 and answer.status_code != 429
            if refused:
                self.problems.append(f"a job was refused: {answer and answer.text}")
                return
            if self._is_over.wait(_LOOK_SECS):
                return
        self.problems.append(f"no job was accepted for {PATIENCE_SECS:.0f} s")

    def _num_open(self) -> int:
        answer = self._ask("GET", "/api/v1/jobs", params={"limit": 50})
        if answer is None or answer.status_code != 200:
            return _MAX_OPEN
        return sum(job["state"] in _OPEN for job in answer.json()["items"])

    def _read(self, job_id: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < deadline:
            answer = self._ask("GET", f"/api/v1/jobs/{job_id}")
            if answer is not None and answer.status_code == 200:
                return dict(answer.json())
            time.sleep(_LOOK_SECS)
        raise AssertionError(f"job {job_id} cannot be read")

    def _ask(self, method: str, path: str, **more: Any) -> httpx2.Response | None:
        try:
            return self._http.request(method, path, **more)
        except httpx2.HTTPError:
            return None


@contextmanager
def keeping(injector: Injector) -> Iterator[Counter[str]]:
    """Start services again that have ended, as a container engine does, while the body runs."""
    restarts: Counter[str] = Counter()
    is_over = threading.Event()

    def restart_ended() -> None:
        while not is_over.wait(_LOOK_SECS):
            for name in PARTS:
                with injector.lock:
                    if injector.restart_if_ended(name):
                        restarts[name] += 1

    thread = threading.Thread(target=restart_ended, name="keeper", daemon=True)
    thread.start()
    try:
        yield restarts
    finally:
        is_over.set()
        thread.join()


def run(
    injector: Injector, http: httpx2.Client, seed: int, num: int, secs: float
) -> tuple[list[str], str]:
    """Run jobs amid faults, and check them; return what is wrong, and a line on what happened."""
    rng = Random(seed)
    with injector.connect() as connection:
        history.begin(connection)
    with keeping(injector) as restarts:
        with Load(http, seed, f"chaos-{seed}") as load:
            injector.run(rng, num, secs)
        jobs = load.wait_for_ends()
        for name in PARTS:
            injector.wait(name)
    with injector.connect() as connection:
        entries = history.read(connection)
        stored = connection.execute(b"SELECT id::text FROM jobs").fetchall()
        history.end(connection)
    problems = load.problems + history.violations(entries, injector.processes)
    problems += [f"job {job['id']} {job['state']}: {job['error']}" for job in jobs if job["error"]]
    problems += [f"job {job['id']} {job['state']}" for job in jobs if job["state"] != "succeeded"]
    lost = load.jobs.keys() - {str(row[0]) for row in stored}
    problems += [f"job {job_id} was accepted and is lost" for job_id in lost]
    problems += wrong_winners(http, {(load.jobs[job["id"]], job["workload_key"]) for job in jobs})
    counts = ", ".join(f"{kind} {number}" for kind, number in sorted(injector.counts.items()))
    trials = sum(job["num_measured"] for job in jobs)
    line = (
        f"{sum(injector.counts.values())} faults ({counts}); {sum(restarts.values())} restarts; "
        f"{len(jobs)} jobs, {trials} trials, {len(entries)} changes in the history"
    )
    return problems, line


def wrong_winners(http: httpx2.Client, workloads: set[tuple[str, str]]) -> list[str]:
    """Run the best schedule of each workload; return those that do not compute a product."""
    problems = []
    for operator, key in sorted(workloads):
        params = {"workload_key": key, "target": TARGET}
        best = http.get("/api/v1/schedules/best", params=params).raise_for_status().json()
        if not _is_correct(operator, best):
            problems.append(f"the best schedule of {operator} computes something else")
    return problems


def _is_correct(operator: str, best: Mapping[str, Any]) -> bool:
    scheduled = Trace.from_json(best["trace"]).apply_to(from_spec(operator))
    rows, columns, depth = map(int, operator.removeprefix("matmul:").split(","))
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (rows, depth)).astype(np.float32)
    b = rng.uniform(-1, 1, (depth, columns)).astype(np.float32)
    product = np.full((rows, columns), np.nan, np.float32)
    build(scheduled, TARGET)(a, b, product)
    return bool(np.allclose(product, a @ b, rtol=1e-4, atol=1e-4))


def connect(stack: Stack) -> httpx2.Client:
    """Return a client of the proxy, as the administrator."""
    token = (stack.secrets / "admin_token").read_text().strip()
    return httpx2.Client(
        base_url=stack.url("proxy", 8080),
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )


def left_files(stack: Stack) -> list[Path]:
    """Return the temporary files of services that have stopped."""
    folders = {
        service.paths["/tmp"] for service in stack.services.values() if "/tmp" in service.paths
    }
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
        and path.name not in _LOCKS_OF_DASK
        and not path.is_relative_to(folder / _CACHE)
    ]


def lose_power(seed: int, secs: float, problems: list[str]) -> int:
    """Let SQLite databases lose their power for some seconds; return how often they did.

    Args:
        problems: Receives what is wrong.
    """
    if find_compiler() is None:
        return 0
    until, num_losses = time.monotonic() + secs, 0
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="lw-power-") as folder:
            try:
                left = power_loss.run(Path(folder), seed + num_losses, 300)
            except AssertionError as error:
                problems.append(f"after a power loss (seed {seed + num_losses}): {error}")
                break
        num_losses += len(left)
    return num_losses


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stack amid faults; return an exit code."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--secs", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    configure_logs()
    injectors: list[Injector] = []
    with running(lambda stack: injectors.append(Injector(stack))) as stack:
        (injector,) = injectors
        with connect(stack) as http:
            num = max(1, round(options.secs / _SECS_PER_FAULT))
            problems, line = run(injector, http, options.seed, num, options.secs)
        codes = stack.stop()
        problems += [f"{name} ended with code {code}" for name, code in codes.items() if code]
        problems += [f"process {process} was left" for process in stack.orphans()]
        problems += [f"file {path} was left" for path in left_files(stack)]
        injector.close()
    num_losses = lose_power(options.seed, options.secs / 10, problems)
    sys.stdout.writelines(f"{entry}\n" for entry in injector.log)
    sys.stdout.write(f"seed {options.seed}: {line}; {num_losses} power losses of SQLite\n")
    sys.stdout.writelines(f"violation: {problem}\n" for problem in problems)
    sys.stdout.write(f"{len(problems)} violations\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
