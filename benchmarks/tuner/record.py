"""Record measurements of design spaces: `python -m benchmarks.tuner.record [NAME...]`.

Each set becomes a file of `tuner/recorded/`; see `tuner.replay.recorded_set`. Existing sets do not
change. Missing sets of this CPU are recorded, a few at a time in turns, until all are complete or
the time limit is reached. A later call continues from their journals, and `--write` converts
incomplete journals to sets. Kernels run in this process, pinned to one core. If one crashes it, the
next start records the crash.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.report import commit, machine
from benchmarks.tuner.candidate_builds import CandidateBuilds
from benchmarks.tuner.recorded_workloads import BY_NAME, RECORDINGS, Recording
from benchmarks.tuner.recorder import TURNS, Recorder
from compiler.driver import toolchain
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tuner.replay.packaged import FOLDER
from tuner.replay.recorded_set import SUFFIX, Masks, RecordedSet
from tuner.space.filter.static_filter import passes

JOURNAL = ".journal"
SIDE_BY_SIDE = 8
"""Sets that take turns: their steps put the turns of a candidate about a minute apart."""


def main() -> None:
    """Record the named sets, or all missing ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BY_NAME))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--builders", type=int, default=max(1, len(os.sched_getaffinity(0)) - 1))
    parser.add_argument("--write", action="store_true", help="write incomplete sets, too")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in BY_NAME]:
        parser.error(f"no recording is called {unknown[0]}")
    args.folder.mkdir(exist_ok=True)
    host = CpuTarget.of(Target("cpu")).cpu
    wanted = [r for r in RECORDINGS if r.name in args.names or (not args.names and r.cpu == host)]
    missing = [r for r in wanted if not (args.folder / f"{r.name}{SUFFIX}").exists()]
    builds = CandidateBuilds(args.builders, args.core)
    os.sched_setaffinity(0, {args.core})
    try:
        deadline = time.monotonic() + 60 * args.minutes
        record(missing, args.folder, builds, deadline, write_all=args.write)
    finally:
        builds.close()


def record(
    recordings: list[Recording],
    folder: Path,
    builds: CandidateBuilds,
    deadline: float,
    *,
    write_all: bool = False,
) -> None:
    """Record sets by turns until `deadline`; write each when it is complete."""
    waiting = _recorders(recordings, folder, builds)
    active: list[Recorder] = []
    while time.monotonic() < deadline:
        while len(active) < SIDE_BY_SIDE and (recorder := next(waiting, None)) is not None:
            active.append(recorder)
        if not active:
            return
        for recorder in active:
            recorder.step()
            _show(recorder)
            if recorder.is_done:
                _write(recorder, folder)
        active = [recorder for recorder in active if not recorder.is_done]
    for _ in range(TURNS):
        for recorder in active:
            recorder.step(with_new=False)
    for recorder in active:
        if recorder.is_done or write_all:
            _write(recorder, folder)


def _recorders(
    recordings: list[Recording], folder: Path, builds: CandidateBuilds
) -> Iterator[Recorder]:
    """Yield a recorder for each recording; each takes seconds to prepare."""
    for recording in recordings:
        yield Recorder(recording, folder / f"{recording.name}{JOURNAL}", builds)


def _write(recorder: Recorder, folder: Path) -> None:
    written(recorder).write(folder)
    (folder / f"{recorder.recording.name}{JOURNAL}").unlink()


def written(recorder: Recorder) -> RecordedSet:
    """Return the results so far as a set."""
    space, points = recorder.space, recorder.points
    found = sorted(recorder.secs.keys() | recorder.errors.keys())
    by_sketch = [
        [n for n in found if points[n].sketch == sketch] for sketch in range(len(space.sketches))
    ]
    rows = tuple(
        np.array([points[n].choices for n in own], np.int64).reshape(len(own), len(sketch.knobs))
        for own, sketch in zip(by_sketch, space.sketches, strict=True)
    )
    is_drawn = tuple(np.array(["w" in recorder.marks[n] for n in own], bool) for own in by_sketch)
    is_kept = tuple(
        passes(sketch, own, CpuTarget.of(space.target))
        for sketch, own in zip(space.sketches, rows, strict=True)
    )
    return RecordedSet(
        name=recorder.recording.name,
        operator=recorder.recording.operator,
        script=recorder.task.func.script(),
        target=recorder.task.target.name,
        sketches=space.sketches,
        rows=rows,
        is_drawn=is_drawn,
        is_kept=is_kept,
        secs=tuple(
            np.array([min(recorder.secs.get(n, [np.inf])) for n in own]) for own in by_sketch
        ),
        errors={points[n]: error for n, error in recorder.errors.items()},
        provenance={
            "spec": recorder.recording.spec,
            "machine": machine(),
            "toolchain": toolchain(),
            "commit": commit(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "turns": TURNS,
            "repeatability": {
                "drawn": _repeatability(recorder, _chosen(by_sketch, is_drawn)),
                "kept": _repeatability(recorder, _chosen(by_sketch, is_kept)),
            },
        },
    )


def _chosen(numbers: list[list[int]], masks: Masks) -> list[int]:
    """Return the numbers of all sketches that masks choose."""
    pairs = zip(numbers, masks, strict=True)
    return [n for own, mask in pairs for n, chosen in zip(own, mask, strict=True) if chosen]


def _repeatability(recorder: Recorder, numbers: list[int]) -> dict[str, float]:
    """Return how well even and odd turns agree, for candidates with all turns.

    `agreement` is the share of pairs of candidates of which both say the same, `spread` the median
    difference of a candidate's two times.
    """
    turns = [recorder.secs.get(n, [])[:TURNS] for n in numbers]
    full = np.array([own for own in turns if len(own) == TURNS]).reshape(-1, TURNS)
    first, second = full[:, 0::2].min(axis=1), full[:, 1::2].min(axis=1)
    one, other = np.triu_indices(len(full), 1)
    same = np.sign(first[one] - first[other]) == np.sign(second[one] - second[other])
    return {
        "agreement": round(float(same.mean()), 4) if len(same) else 1.0,
        "spread": round(float(np.median(np.abs(first / second - 1))), 4) if len(full) else 0.0,
    }


def _show(recorder: Recorder) -> None:
    of_all = f"{recorder.num_measured} of {len(recorder.points)}"
    print(f"{recorder.recording.name}: {of_all}", flush=True)


if __name__ == "__main__":
    main()
