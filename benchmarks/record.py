"""Record measurements of whole design spaces: `python -m benchmarks.record [NAME...]`.

Each set becomes a file of `benchmarks/recorded/`; see `tuner.replay.recorded_set`. Sets that are
there are left alone, and one that was interrupted goes on from its journal. Kernels run in this
process: what crashes it is recorded as a crash when it is started again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import loopwright as lw
from benchmarks.recorded_workloads import BY_NAME, RECORDINGS, Recording
from benchmarks.report import commit, machine
from benchmarks.timed_batches import Batches, Found
from compiler.driver import toolchain
from compiler.runtime.measurement import ErrorKind
from tuner.replay.recorded_set import SUFFIX, RecordedSet
from tuner.space.design_space import DesignSpace, Point
from tuner.space.generate import design_space
from tuner.space.knob import Ints
from tuner.task import Task

FOLDER = Path(__file__).parent / "recorded"
TARGET = "cpu -num-cores=1"
BATCH = 24
"""Candidates that are timed in turns."""
TRIES = 64
MOST_OPTIONS = 6
"""Of a knob that is narrowed; the best of some random tries is taken."""
NUM_REPEATED = 48
"""Candidates that are built and timed once more, to see how repeatable times are."""


def main() -> None:
    """Record the sets that are named, or all that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BY_NAME))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in BY_NAME]:
        parser.error(f"no recording is called {unknown[0]}")
    args.folder.mkdir(exist_ok=True)
    for recording in RECORDINGS:
        is_wanted = recording.name in args.names or not args.names
        if is_wanted and not (args.folder / f"{recording.name}{SUFFIX}").exists():
            record(recording, args.folder)


def record(recording: Recording, folder: Path) -> None:
    """Record one set, and write it."""
    task = Task(lw.ops.from_spec(recording.spec), lw.Target(TARGET))
    space = design_space(task)
    rows = [_chosen(recording, space, sketch) for sketch in range(len(space.sketches))]
    points = [Point(s, tuple(row)) for s, own in enumerate(rows) for row in own.tolist()]
    # In a random order, so that what the machine does meanwhile falls on all sketches alike.
    order = [points[i] for i in np.random.default_rng(0).permutation(len(points))]
    batches = Batches(task, space)
    with _journal(folder / f"{recording.name}.journal", points) as (found, note):
        left = [point for point in order if point not in found]
        for start in range(0, len(left), BATCH):
            measured = batches.measure(left[start : start + BATCH], lambda p: note(p, None))
            for point, result in measured.items():
                note(point, result)
            print(f"{recording.name}: {len(found)} of {len(points)}", flush=True)
    right = [p for p in order if found[p].error is None]
    again = batches.measure(right[:NUM_REPEATED])
    spread = [abs(again[p].secs / found[p].secs - 1) for p in again if again[p].error is None]
    recorded = RecordedSet(
        name=recording.name,
        operator=recording.operator,
        script=task.func.script(),
        target=task.target.name,
        is_exhaustive=recording.is_exhaustive,
        sketches=space.sketches,
        rows=tuple(rows),
        secs=tuple(
            np.array([found[Point(s, tuple(row))].secs for row in own.tolist()])
            for s, own in enumerate(rows)
        ),
        errors={p: error for p in points if (error := found[p].error)},
        provenance={
            "spec": recording.spec,
            "machine": machine(),
            "toolchain": toolchain(),
            "commit": commit(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "repeated": len(spread),
            "median_spread": float(np.median(spread)),
            "p90_spread": float(np.quantile(spread, 0.9)),
        },
    )
    path = recorded.write(folder)
    (folder / f"{recording.name}.journal").unlink()
    print(
        f"{path.name}: {len(recorded)} candidates, {len(recorded.errors)} failed, repeated within "
        f"{np.median(spread):.1%} (median), {np.quantile(spread, 0.9):.1%} (9 of 10)",
        flush=True,
    )


def _chosen(recording: Recording, space: DesignSpace, sketch: int) -> Ints:
    """Return the rows of a sketch that are recorded, its share of the set."""
    rng = np.random.default_rng(sketch)
    share = -(-recording.most // len(space.sketches))
    if not recording.is_exhaustive:
        return space.draw(sketch, share, rng)
    if space.is_small(sketch) and space.count(sketch).number <= share:
        return space.enumerate(sketch)
    narrowed = (_narrowed(space, sketch, rng) for _ in range(TRIES))
    return max((rows for rows in narrowed if len(rows) <= share), key=len)


def _narrowed(space: DesignSpace, sketch: int, rng: np.random.Generator) -> Ints:
    """Return all points that are left when each knob has but some random options."""
    most = rng.integers(2, MOST_OPTIONS + 1)
    options = [np.sort(rng.permutation(size)[:most]) for size in space.sketches[sketch].num_options]
    grid = np.stack(np.meshgrid(*options, indexing="ij"), axis=-1).reshape(-1, len(options))
    return np.unique(space.keep(sketch, grid), axis=0)


@contextmanager
def _journal(
    path: Path, points: list[Point]
) -> Iterator[tuple[dict[Point, Found], Callable[[Point, Found | None], None]]]:
    """Give what was found already, and a function that notes more.

    A point that was begun and never found crashed the process.
    """
    found: dict[Point, Found] = {}
    numbers = {point: number for number, point in enumerate(points)}
    if path.exists():
        for line in path.read_text().splitlines():
            number, secs, error = json.loads(line)
            kind = ErrorKind(error) if error else None
            found[points[number]] = Found(float("inf") if secs is None else secs, kind)
    with path.open("a") as file:

        def note(point: Point, result: Found | None) -> None:
            noted = result or Found(float("inf"), ErrorKind.CRASH)
            secs = noted.secs if noted.error is None else None
            file.write(json.dumps([numbers[point], secs, noted.error and noted.error.value]) + "\n")
            file.flush()
            found[point] = noted

        yield found, note


if __name__ == "__main__":
    main()
