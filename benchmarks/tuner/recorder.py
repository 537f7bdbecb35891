"""Build the candidates of one set, and time them in distant turns, in this process.

Candidates stay loaded for a few steps, and each step times all of them once at real-time priority.
Several sets take steps in turns, so the turns of a candidate are about a minute apart. A slow
moment of the machine then affects one turn, and the shortest time counts. The candidates of the
next step are built in other processes meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw
from benchmarks.peers.worker import first_in_line
from benchmarks.tuner.candidate_builds import Build, CandidateBuilds, built
from benchmarks.tuner.recorded_workloads import Recording
from compiler.backends.backend import backend_of
from compiler.backends.trial_arrays import WrongResultError
from compiler.executor.artifact import Artifact
from compiler.ir.interpret.error_growth import check_case
from compiler.runtime.measurement import ErrorKind
from compiler.runtime.time_calls import calls_per_sample, time_calls
from compiler.target.cpu import CpuTarget
from tuner.space.design_space import Point, SketchSpace, distinct
from tuner.space.filter.static_filter import is_compilable
from tuner.space.generate import design_space
from tuner.space.tables.knob import Ints
from tuner.task import Task
from workers.measure.timed_run import load_kernel

BATCH = 24
"""The number of candidates that a step adds."""
TURNS = 4
MIN_SAMPLE_SECS = 100e-6
SLOW = 10
"""Candidates slower than the best by this factor are timed in half of the turns, once in each."""
MAX_DRAWS = 32


@dataclass
class _Loaded:
    """A loaded candidate, ready to be timed."""

    number: int
    run: Callable[[], None]
    calls: int
    samples: int
    turns_left: int


class Recorder:
    """Measures the candidates of a recording; a journal stores the results.

    Attributes:
        points: The recorded points, in random order.
        marks: For each point, `w` if drawn from the whole space, `k` if from the filtered space.
        secs: The shortest time of each turn so far, by number.
        errors: The errors, by number; a candidate that was started and never finished crashed.
    """

    def __init__(self, recording: Recording, journal: Path, builds: CandidateBuilds) -> None:
        self.recording = recording
        self.task = Task(lw.ops.from_spec(recording.spec), lw.Target(recording.target))
        self.space = design_space(self.task)
        self.points, self.marks = _drawn(recording, self.space)
        self.secs: dict[int, list[float]] = {}
        self.errors: dict[int, ErrorKind] = {}
        self._journal = journal
        self._read_journal()
        known = self.secs.keys() | self.errors.keys()
        self._left = [n for n in range(len(self.points)) if n not in known]
        self._loaded: list[_Loaded] = []
        self._builds = builds
        self._coming: list[tuple[int, Build]] = []
        self._script = self.task.func.script()
        case = check_case(self.task.func, 0)
        self._arrays = backend_of(self.task.target).arrays(self.task.func, self.task.target, case)

    @property
    def is_done(self) -> bool:
        """Whether all candidates had all their turns."""
        return not (self._left or self._coming or self._loaded)

    @property
    def num_measured(self) -> int:
        """The number of candidates with a time or an error."""
        return len(self.secs.keys() | self.errors.keys())

    def step(self, *, with_new: bool = True) -> None:
        """Load the candidates that were built, then time all loaded candidates once."""
        for number, build in self._coming:
            loaded = self._load(number, built(build))
            if loaded is not None:
                self._loaded.append(loaded)
        self._coming = self._started() if with_new else []
        for each in self._loaded:
            with first_in_line():
                if each.samples > 1:
                    each.run()
                secs = min(time_calls(each.run, 1, each.calls) for _ in range(each.samples))
            self._note(each.number, secs=secs)
            each.turns_left -= 1
        self._loaded = [each for each in self._loaded if each.turns_left]

    def _started(self) -> list[tuple[int, Build]]:
        """Start to build the next batch."""
        batch, self._left = self._left[:BATCH], self._left[BATCH:]
        candidates = [self.space.candidate(self.points[number]) for number in batch]
        traces = [candidate.trace.to_text() for candidate in candidates]
        return list(
            zip(
                batch,
                self._builds.submit(self._script, self.task.target.name, traces),
                strict=True,
            )
        )

    def _load(self, number: int, artifact: Artifact | None) -> _Loaded | None:
        """Load and check a candidate; None if it failed."""
        if artifact is None:
            self._note(number, error=ErrorKind.BUILD_ERROR)
            return None
        self._note(number, error=ErrorKind.CRASH)  # in case that it does
        module, arguments = load_kernel(artifact, self._arrays)
        run = module.bind(*arguments)
        run()
        try:
            self._arrays.check()
        except WrongResultError:
            self._note(number, error=ErrorKind.WRONG_RESULT)
            return None
        self._note(number)
        with first_in_line():
            secs = time_calls(run, 1, 1)
            calls = calls_per_sample(run, 1, MIN_SAMPLE_SECS, time_calls)
        best = min((s for own in self.secs.values() for s in own), default=secs)
        if secs > SLOW * best:
            return _Loaded(number, run, calls, 1, TURNS // 2)
        return _Loaded(number, run, calls, 3 if secs * calls < 4 * MIN_SAMPLE_SECS else 2, TURNS)

    def _note(
        self, number: int, *, secs: float | None = None, error: ErrorKind | None = None
    ) -> None:
        """Write a line of the journal; without a time and an error, the candidate did not crash."""
        line = {"n": number, "secs": secs, "error": error and error.value}
        with self._journal.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        number = line["n"]
        if line["error"] is not None:
            self.errors[number] = ErrorKind(line["error"])
        else:
            self.errors.pop(number, None)
            if line["secs"] is not None:
                self.secs.setdefault(number, []).append(line["secs"])

    def _read_journal(self) -> None:
        """Read the results of earlier runs.

        Raises:
            ValueError: If they are for other candidates, because rules or the filter changed.
        """
        drawn = [[p.sketch, *p.choices] for p in self.points]
        if not self._journal.exists():
            self._journal.write_text(json.dumps(drawn) + "\n")
        first, *lines = self._journal.read_text().splitlines()
        if json.loads(first) != drawn:
            raise ValueError(f"{self._journal} is of another design space: delete it")
        for line in lines:
            self._take(json.loads(line))


def _drawn(recording: Recording, space: SketchSpace) -> tuple[list[Point], list[str]]:
    """Return the points to record in random order, with marks; sketches have equal shares."""
    marks: dict[Point, str] = {}
    num = len(space.sketches)
    for sketch in range(num):
        whole = _draw_whole(space, sketch, -(-recording.num_whole // num))
        rng = np.random.default_rng(sketch)
        kept = space.draw(sketch, -(-recording.num_kept // num), rng)
        for rows, mark in ((whole, "w"), (kept, "k")):
            for row in rows.tolist():
                point = Point(sketch, tuple(row))
                marks[point] = marks.get(point, "") + mark
    points = list(marks)
    order = np.random.default_rng(0).permutation(len(points)).tolist()
    return [points[place] for place in order], [marks[points[place]] for place in order]


def _draw_whole(space: SketchSpace, index: int, num: int) -> Ints:
    """Draw up to `num` different rows of a sketch, of all that compile."""
    sketch = space.sketches[index]
    rng = np.random.default_rng(100 + index)
    if space.is_small(index):
        sizes = tuple(sketch.num_options.tolist())
        every = np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int64)
        own = _own(space, index, every)
        return own[rng.permutation(len(own))[:num]]
    found = np.empty((0, len(sketch.knobs)), np.int64)
    for _ in range(MAX_DRAWS):
        found = distinct(np.vstack([found, _own(space, index, sketch.draw(4 * num, rng))]))
        if len(found) >= num:
            break
    return found[:num]


def _own(space: SketchSpace, index: int, rows: Ints) -> Ints:
    """Return the canonical rows whose code is not too long."""
    sketch = space.sketches[index]
    rows = rows[sketch.is_representative(rows)]
    return rows[is_compilable(sketch, rows, CpuTarget.of(space.target))]
