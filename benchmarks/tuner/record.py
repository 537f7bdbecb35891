"""Record measurements of design spaces: `python -m benchmarks.tuner.record [NAME...]`.

Each set becomes a file of `tuner/recorded/`; see `tuner.replay.recorded_set`. Existing sets do not
change. Missing sets are recorded in turns until they are complete or the time limit is reached. A
later call continues from their journals, and `--write` converts incomplete journals to sets.
Kernels run in this process. If one crashes it, the next start records the crash.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.report import commit, machine
from benchmarks.tuner.recorded_workloads import BY_NAME, RECORDINGS, Recording
from benchmarks.tuner.recorder import TURNS, Recorder
from compiler.driver import toolchain
from compiler.target.cpu import CpuTarget
from tuner.replay.packaged import FOLDER
from tuner.replay.recorded_set import SUFFIX, Masks, RecordedSet
from tuner.space.filter.static_filter import passes

JOURNAL = ".journal"


def main() -> None:
    """Record the named sets, or all missing ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BY_NAME))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--write", action="store_true", help="write incomplete sets, too")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in BY_NAME]:
        parser.error(f"no recording is called {unknown[0]}")
    args.folder.mkdir(exist_ok=True)
    wanted = [r for r in RECORDINGS if r.name in args.names or not args.names]
    missing = [r for r in wanted if not (args.folder / f"{r.name}{SUFFIX}").exists()]
    record(missing, args.folder, time.monotonic() + 60 * args.minutes, write_all=args.write)


def record(
    recordings: list[Recording], folder: Path, deadline: float, *, write_all: bool = False
) -> None:
    """Record sets by turns until `deadline`, and write those that are complete."""
    recorders = [Recorder(each, folder / f"{each.name}{JOURNAL}") for each in recordings]
    while time.monotonic() < deadline and not all(each.is_done for each in recorders):
        for each in recorders:
            if not each.is_done and time.monotonic() < deadline:
                each.step()
                _show(each)
    for _ in range(TURNS):
        for each in recorders:
            each.step(with_new=False)
    for each in recorders:
        if each.is_done or write_all:
            written(each).write(folder)
            (folder / f"{each.recording.name}{JOURNAL}").unlink()


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
    num = len(recorder.secs.keys() | recorder.errors.keys())
    print(f"{recorder.recording.name}: {num} of {len(recorder.points)}", flush=True)


if __name__ == "__main__":
    main()
