"""A coordinator in a process of its own: drives jobs of a database as long as there are any.

It measures by a formula. With `hold`, it says when it has a first candidate in hand, and waits for
a line of input. With `elsewhere`, others take it for a process of another host.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing

from compiler.runtime.measurement import Measurement
from service.common import owner
from service.coordinator.coordinator import Coordinator
from service.store.database.database import open_database
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from workers.logs import configure_logs


def cost(candidate: Candidate) -> float:
    """Return a run time that is fixed for each candidate."""
    return 0.1 + int(candidate.key[:4], 16) / 2**17


class Holding(MemoryMeasurer):
    """Waits once, with a job in hand."""

    is_held = False

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        if not self.is_held:
            self.is_held = True
            print("holding", flush=True)  # noqa: T201
            sys.stdin.readline()
        yield from super().measure(task, candidates, incumbent_secs)


def main(url: str, options: Sequence[str]) -> None:
    """Drive jobs until there is none that is free."""
    configure_logs()  # to standard error
    if "elsewhere" in options:
        owner._this_machine = lambda: "another host"  # type: ignore[assignment]
    with closing(open_database(url)) as database:
        measurer = (Holding if "hold" in options else MemoryMeasurer)(cost)
        coordinator = Coordinator(database, measurer, lease_secs=3600.0)
        driven = 0
        while coordinator.run_one():
            driven += 1
        print(f"drove {driven}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
