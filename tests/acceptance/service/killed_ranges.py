"""Coordinators are killed and stopped while they choose the kernels of a search over ranges.

One is killed with `kill -9`. The next is stopped (SIGSTOP) until its lease is over and a third has
chosen, and then goes on. Each timing was stored once, none was changed, and the result equals that
of an undisturbed search.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from compiler.ir.analysis.specialize import sized
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.nodes import static_shape
from compiler.runtime.measurement import Measurement
from tests.acceptance.service.forked_service import (
    ForkedService,
    NotingMeasurer,
    Part,
    running,
    wait_until,
)
from tuner.candidate import Candidate
from tuner.task import Task

BODY = {
    "workload": {"operator": "matmul:M,32,32"},
    "ranges": {"M": [2, 40]},
    "max_trials": 32,
    "target": "cpu -num-cores=1",
    "strategy": "random",
    "warm_start": False,
}
LEASE_SECS = 2.0
TIMING_SECS = 0.02
"""A symbolic kernel takes so long, so that there is time to kill amid the choice."""
STEP = 5
"""Timings that are stored before each kill."""


class SlowMeasurer(NotingMeasurer):
    """Times by a formula of the rows and the sketch."""

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's measurement; those of symbolic programs slowly."""
        for index, _ in super().measure(task, candidates, incumbent_secs):
            if symbolic_vars(task.func):
                time.sleep(TIMING_SECS)
            yield index, _formula(task, candidates[index])

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds that are all the same."""
        for _ in range(num_rounds):
            yield [_formula(task, candidate) for candidate in candidates]


def _formula(task: Task, candidate: Candidate) -> Measurement:
    rows = static_shape(sized(task.func).buffers[0])[0]
    favourite = {"direct": 3.0, "cached": 12.0}.get(candidate.sketch, 1e6)
    return Measurement((1e-6 * rows * (1 + abs(math.log(rows / favourite))),))


def main() -> None:
    """Tune over a range amid kills, and once more without; compare the results."""
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        db_url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/loopwright.db"
        with running(
            Path(folder), db_url, is_measured=False, measurer=SlowMeasurer, lease_secs=LEASE_SECS
        ) as service:
            sys.stdout.write(f"{_run(service, db_url)}\n")


def _run(service: ForkedService, db_url: str) -> str:
    first, stopped = service.coordinator, Part(service.coordinator.run, service.coordinator.log)
    third = Part(service.coordinator.run, service.coordinator.log)
    shapes_id = service.http.post("/shapes", json=BODY).raise_for_status().json()["id"]
    try:
        first.start()
        _wait_for_timings(service, shapes_id, STEP)
        first.kill()
        before = _timings(db_url)
        stopped.start()
        _wait_for_timings(service, shapes_id, len(before) + STEP)
        os.kill(stopped.pid, signal.SIGSTOP)
        amid = _timings(db_url)
        third.start()
        disturbed = _ended(service, shapes_id)
        chosen = _timings(db_url)
        assert before.items() <= amid.items() <= chosen.items(), "a stored timing was changed"
        third.kill()
        os.kill(stopped.pid, signal.SIGCONT)
        # It has lost its lease; if it serves another search, it has left this one.
        again = service.http.post("/shapes", json={**BODY, "seed": 0}).raise_for_status().json()
        calm = _ended(service, again["id"])
        after = _timings(db_url)
        assert chosen.items() <= after.items()
        assert service.get(f"/shapes/{shapes_id}") == disturbed
        for name in ("dispatcher", "module", "times", "kernels", "num_timed", "num_measured"):
            assert disturbed[name] == calm[name], name
        assert len(after) == disturbed["num_timed"] + calm["num_timed"]
        return f"{len(before)}, {len(amid)} and {len(chosen)} timings"
    finally:
        for part in (stopped, third):
            if part.pid and _is_alive(part.pid):
                os.kill(part.pid, signal.SIGCONT)
                part.kill()
        first.pid = 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_for_timings(service: ForkedService, shapes_id: str, number: int) -> None:
    wait_until(
        lambda: service.get(f"/shapes/{shapes_id}")["num_timed"] >= number,
        f"there are fewer than {number} timings",
    )
    assert service.get(f"/shapes/{shapes_id}")["state"] == "running", "the choice has ended"


def _ended(service: ForkedService, shapes_id: str) -> Mapping[str, Any]:
    wait_until(
        lambda: service.get(f"/shapes/{shapes_id}")["state"] not in {"queued", "running"},
        "the search does not end",
    )
    shapes: Mapping[str, Any] = service.get(f"/shapes/{shapes_id}")
    assert shapes["state"] == "succeeded", shapes
    return shapes


def _timings(db_url: str) -> dict[tuple[str, ...], str]:
    """Return when each timing was stored, by what it is of, past the service."""
    engine = create_engine(db_url)
    columns = "shapes_id, task_key, candidate_key, created_at"
    try:
        with engine.connect() as connection:
            rows = connection.execute(text(f"SELECT {columns} FROM shape_timings")).all()
    finally:
        engine.dispose()
    timings = {tuple(map(str, row[:3])): str(row[3]) for row in rows}
    assert len(timings) == len(rows), "a timing was stored twice"
    return timings


if __name__ == "__main__":
    main()
