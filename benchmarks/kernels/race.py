"""Measure the time that our search takes to reach the final kernel of MetaSchedule.

    python -m benchmarks.kernels.race --metaschedule 256 --seeds 0,1,2

Both tune each workload with several seeds, each in a new process; stored results are not tuned
again. Then all resulting kernels are timed in turns, as in the table of kernels. The ratio of
MetaSchedule's kernel to our final kernel in these turns is looked up in the curve of our search.
The time to MetaSchedule's best is when our best so far reached that ratio. So the different timers
of the two searches do not matter. Both tuning times exclude the import of the library; ours
includes everything after the call.

Beside these kernels run the first proposal of the base model, without any trial, and the results of
searches that had a few seconds in all, each in a new process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks import RESULTS
from benchmarks.kernels.driver import Settings, measure
from benchmarks.kernels.metaschedule import tune_with_metaschedule
from benchmarks.kernels.results import Row, geometric_mean, ratio
from benchmarks.kernels.table import print_table
from benchmarks.kernels.traces import trace_path, tune_and_store
from benchmarks.peers.environments import PEERS, Peer
from benchmarks.peers.library import FIRST_SEED, metaschedule_path
from benchmarks.report import commit, machine
from benchmarks.workloads.table import select
from benchmarks.workloads.workload import BenchmarkWorkload

LIMITS_SECS = (1, 5)
"""The limits on time of short searches."""


@dataclass(frozen=True)
class Heat:
    """One seed of ours against one seed of theirs, on one workload.

    Attributes:
        faster: The ratio of their run time to ours, the median of turns; above 1 ours is faster.
        their_secs: The tuning time of MetaSchedule.
        our_secs: Our tuning time, all trials and the finish.
        secs_to_theirs: The time until our kernel was as fast as theirs; None if it never was.
        sooner_stops: The same ratio as `faster` of kernels of less work, by what was spent.
    """

    workload: str
    our_seed: int
    their_seed: int
    faster: float
    their_secs: float
    our_secs: float
    secs_to_theirs: float | None
    sooner_stops: dict[str, float]

    @property
    def speedup(self) -> float:
        """The ratio of their tuning time to `secs_to_theirs`, or to `our_secs` if that is None."""
        return self.their_secs / (self.secs_to_theirs or self.our_secs)


def main() -> None:
    """Tune the missing kernels, time all, and print and store the heats."""
    args = _arguments()
    settings = Settings(args.threads, _cores(args.threads), args.passes, args.rounds)
    for seed in args.seeds:
        _tune_ours(args.workloads, args.threads, args.trials, seed)
        for secs in LIMITS_SECS:
            _tune_ours(args.workloads, args.threads, None, seed, secs)
    if args.metaschedule:
        for seed in args.their_seeds:
            core = settings.cores[-1]
            tune_with_metaschedule(args.workloads, args.metaschedule, args.threads, core, seed)
    heats: list[Heat] = []
    for workload in args.workloads:
        heats += _race(workload, args.seeds, args.their_seeds, settings)
    _store(heats, settings)
    _print(heats)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels.race", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workloads", type=select, default="public,seed")
    parser.add_argument("--trials", type=int, default=200, help="of ours")
    parser.add_argument("--seeds", type=_numbers, default="0", help="of ours, such as 0,1,2")
    parser.add_argument("--metaschedule", type=int, metavar="TRIALS", help="tune theirs as well")
    parser.add_argument("--their-seeds", type=_numbers, default=str(FIRST_SEED))
    parser.add_argument("--passes", type=int, default=Settings.passes)
    parser.add_argument("--rounds", type=int, default=Settings.rounds, help="in a pass")
    return parser.parse_args()


def _numbers(words: str) -> list[int]:
    return [int(word) for word in words.split(",")]


def _cores(threads: int) -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0))[-threads:])


def _tune_ours(
    workloads: Sequence[BenchmarkWorkload],
    threads: int,
    trials: int | None,
    seed: int,
    max_secs: int | None = None,
) -> None:
    """Tune each workload in a new process, so that none profits from an earlier one."""
    spawn = multiprocessing.get_context("spawn")
    backend = _ours(seed, max_secs)
    missing = [w for w in workloads if not trace_path(w, threads, backend).exists()]
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for workload in missing:
            pool.submit(
                tune_and_store, workload, threads, trials, seed, backend, max_secs=max_secs
            ).result()


def _ours(seed: int, max_secs: int | None = None) -> str:
    return f"tuned@{seed}" if max_secs is None else f"tuned@{seed}-{max_secs}s"


def _stops(seed: int) -> dict[str, str]:
    """Return the backends of less work than a whole search, by what was spent."""
    return {"0 trials": "proposed", **{f"{secs} s": _ours(seed, secs) for secs in LIMITS_SECS}}


def _race(
    workload: BenchmarkWorkload,
    seeds: Sequence[int],
    their_seeds: Sequence[int],
    settings: Settings,
) -> Iterator[Heat]:
    """Time the kernels of a workload in turns; skip seeds without one."""
    threads = settings.threads
    ours = [s for s in seeds if trace_path(workload, threads, _ours(s)).exists()]
    theirs = [s for s in their_seeds if metaschedule_path(workload.name, threads, s).exists()]
    if not ours or not theirs:
        print(f"{workload.name}: {'MetaSchedule' if ours else 'our search'} has no kernel")
        return
    (tvm,) = (peer for peer in PEERS if peer.library == "tvm")
    peers = [Peer(_theirs(seed), tvm.library, tvm.environment) for seed in theirs]
    backends = [backend for seed in ours for backend in (_ours(seed), *_stops(seed).values())]
    found = measure([workload], peers, settings, backends=list(dict.fromkeys(backends)))
    for our_seed in ours:
        for their_seed in theirs:
            heat = _heat(workload, found.rows[workload.name], our_seed, their_seed, threads)
            if heat is not None:
                yield heat


def _theirs(seed: int) -> str:
    return f"metaschedule@{seed}"


def _heat(
    workload: BenchmarkWorkload, row: Row, our_seed: int, their_seed: int, threads: int
) -> Heat | None:
    faster = ratio(row, _ours(our_seed), _theirs(their_seed))
    if faster is None:
        backends = row["backends"]
        print(workload.name, {name: entry.get("error") for name, entry in backends.items()})
        return None
    ours = _read(trace_path(workload, threads, _ours(our_seed)))
    theirs = _read(metaschedule_path(workload.name, threads, their_seed))
    curve = ours["curve"]
    # Relative to our last kernel: the finish may choose one whose shortest sample is longer.
    reached = (at for at, secs in curve if secs <= curve[-1][1] * faster.median)
    return Heat(
        workload=workload.name,
        our_seed=our_seed,
        their_seed=their_seed,
        faster=faster.median,
        their_secs=theirs["secs"],
        our_secs=ours["secs"],
        secs_to_theirs=next(reached, None),
        sooner_stops={
            spent: found.median
            for spent, backend in _stops(our_seed).items()
            if (found := ratio(row, backend, _theirs(their_seed))) is not None
        },
    )


def _read(path: Any) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _store(heats: Sequence[Heat], settings: Settings) -> None:
    content = {
        "benchmark": "race",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "commit": commit(),
        "settings": asdict(settings),
        "heats": [asdict(heat) for heat in heats],
    }
    path = RESULTS / f"race-t{settings.threads}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _print(heats: Sequence[Heat]) -> None:
    """Print a line for each workload: the medians and the worst values of its heats."""
    lines = []
    names = list(dict.fromkeys(heat.workload for heat in heats))
    for name in names:
        mine = [heat for heat in heats if heat.workload == name]
        faster, speedup = [h.faster for h in mine], [h.speedup for h in mine]
        lines.append(
            [
                name,
                str(len(mine)),
                f"{statistics.median(faster):.2f}",
                f"{min(faster):.2f}",
                *(_median_of_stop(mine, spent) for spent in _stops(0)),
                f"{statistics.median(heat.their_secs for heat in mine):.0f}",
                f"{statistics.median(heat.our_secs for heat in mine):.1f}",
                f"{sum(heat.secs_to_theirs is not None for heat in mine)}/{len(mine)}",
                f"{statistics.median(speedup):.0f}",
                f"{min(speedup):.0f}",
            ]
        )
    stops = [f"in {spent}" for spent in _stops(0)]
    head = [
        "workload",
        "heats",
        "faster",
        "lowest",
        *stops,
        "their s",
        "our s",
        "reached",
        "sooner",
    ]
    print_table("MetaSchedule", [*head, "lowest"], lines, left=(0,))
    faster_mean = geometric_mean(heat.faster for heat in heats)
    speedup_mean = geometric_mean(heat.speedup for heat in heats)
    if faster_mean is not None and speedup_mean is not None:
        print(
            f"geometric means of {len(heats)} heats: {faster_mean:.2f} times as fast,"
            f" {speedup_mean:.0f} times sooner"
        )
    for spent in _stops(0):
        mean = geometric_mean(h.sooner_stops[spent] for h in heats if spent in h.sooner_stops)
        if mean is not None:
            print(f"kernels of {spent}: {mean:.2f} times as fast")


def _median_of_stop(heats: Sequence[Heat], spent: str) -> str:
    found = [heat.sooner_stops[spent] for heat in heats if spent in heat.sooner_stops]
    return f"{statistics.median(found):.2f}" if found else "-"


if __name__ == "__main__":
    main()
