"""A process that searches schedules of a model and kills its own searches; for `test_model_search`.

It prints the trials of each program, of a search that was killed and of one that was not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from compiler import ops
from compiler.driver import toolchain
from compiler.runtime.measurement import Measurement
from compiler.target.cpu import CpuTarget
from loopwright.models.model_search import TimedProgram, search_model
from loopwright.models.records import FILE_NAME, open_records
from tuner.candidate import Candidate, default_candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

IDENTITY = "seed 0"
MAX_TRIALS = 64
NUM_KILLS = 2
LATENCY_SECS = 0.01  # of a measurement, so that a search can be killed within a round
TARGET = CpuTarget("cpu -mcpu=znver4 -num-cores=1")


def programs() -> list[TimedProgram]:
    """Return programs of different weights."""
    funcs = (ops.matmul(32, 32, 32), ops.softmax(16, 64), ops.row_sum(16, 48))
    return [
        TimedProgram(Task(func, TARGET, float(weight)), default_candidate(), 1e-3)
        for weight, func in enumerate(funcs, start=1)
    ]


def cost(candidate: Candidate) -> Measurement:
    """Return the same time for the same schedule."""
    time.sleep(LATENCY_SECS)
    return Measurement((1e-3 * (1 + int(candidate.key[:8], 16) / 2**32),), toolchain=toolchain())


def search(directory: Path) -> None:
    """Search until all trials are measured."""
    with open_records(directory, IDENTITY) as records:
        search_model(
            programs(),
            MemoryMeasurer(cost),
            records,
            max_trials=MAX_TRIALS,
            seed=0,
            cost_model=None,
            on_progress=lambda num_measured, secs: None,
        )


def trials(directory: Path) -> dict[str, list[tuple[int, str, float]]]:
    """Return number, schedule and time of each stored trial, by the names of programs."""
    with open_records(directory, IDENTITY) as records:
        return {
            program.task.func.name: [
                (trial.number, trial.candidate.key, trial.best_secs)
                for trial in records.trials(program.task)
            ]
            for program in programs()
        }


def num_trials(directory: Path) -> int:
    """Return the number of stored trials, past the code that stores them."""
    if not (directory / FILE_NAME).exists():
        return 0
    uri = f"file:{directory / FILE_NAME}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as stored, suppress(sqlite3.OperationalError):
        return int(stored.execute("SELECT count(*) FROM trials").fetchone()[0])
    return 0  # it has no tables yet


def begin(directory: Path) -> int:
    """Search in a child of this process, and return its id."""
    child = os.fork()
    if child:
        return child
    search(directory)
    os._exit(0)


def main() -> None:
    """Search in two directories; kill the searches in one of them at random moments."""
    killed, whole = Path(sys.argv[1]) / "killed", Path(sys.argv[1]) / "whole"
    rng = random.Random(0)
    found = []
    for _ in range(NUM_KILLS):
        end = num_trials(killed) + rng.randrange(1, 24)
        child = begin(killed)
        while num_trials(killed) < end:
            time.sleep(rng.uniform(0, 2 * LATENCY_SECS))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found.append(num_trials(killed))
    for directory in (killed, whole):
        _, status = os.waitpid(begin(directory), 0)
        assert status == 0
    json.dump({"found": found, "killed": trials(killed), "whole": trials(whole)}, sys.stdout)


if __name__ == "__main__":
    main()
