"""Race MetaSchedule: how long until our search has what MetaSchedule has at its end?

    python -m benchmarks.kernels.race --metaschedule 256 --seeds 0,1,2

Both tune each workload with several seeds, each tuning in a new process; what is stored is not
tuned again. Then all the kernels that came out are timed in turns, as in the table of kernels. The
time to MetaSchedule's best is read off the curve of our search: it is the moment when our best so
far was as far from our final kernel as MetaSchedule's kernel is in those turns, so that it does not
matter that the two tune on clocks of their own. MetaSchedule's time leaves out importing TVM; ours
has everything from the call on, and the import of this library is left out as well.
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
from benchmarks.workloads import BenchmarkWorkload, select


@dataclass(frozen=True)
class Heat:
    """One seed of ours against one seed of theirs, on one workload.

    Attributes:
        faster: Their time of a run over ours, the median of turns; above 1 we are faster.
        their_secs: How long MetaSchedule tuned.
        our_secs: How long we tuned, all trials and the finish.
        secs_to_theirs: When we had a kernel as fast as theirs; None if we never had.
    """

    workload: str
    our_seed: int
    their_seed: int
    faster: float
    their_secs: float
    our_secs: float
    secs_to_theirs: float | None

    @property
    def speedup(self) -> float:
        """How many times sooner we had what they had in the end; by our whole tuning if never."""
        return self.their_secs / (self.secs_to_theirs or self.our_secs)


def main() -> None:
    """Tune what is missing, time everything, print and store the heats."""
    args = _arguments()
    settings = Settings(args.threads, _cores(args.threads), args.passes, args.rounds)
    for seed in args.seeds:
        _tune_ours(args.workloads, args.threads, args.trials, seed)
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
    workloads: Sequence[BenchmarkWorkload], threads: int, trials: int, seed: int
) -> None:
    """Tune in a new process each: nothing is known from the workload before."""
    spawn = multiprocessing.get_context("spawn")
    backend = _ours(seed)
    missing = [w for w in workloads if not trace_path(w, threads, backend).exists()]
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for workload in missing:
            pool.submit(tune_and_store, workload, threads, trials, seed, backend).result()


def _ours(seed: int) -> str:
    return f"tuned@{seed}"


def _race(
    workload: BenchmarkWorkload,
    seeds: Sequence[int],
    their_seeds: Sequence[int],
    settings: Settings,
) -> Iterator[Heat]:
    """Time the kernels of a workload in turns; a seed that has none is left out."""
    threads = settings.threads
    ours = [s for s in seeds if trace_path(workload, threads, _ours(s)).exists()]
    theirs = [s for s in their_seeds if metaschedule_path(workload.name, threads, s).exists()]
    if not ours or not theirs:
        print(f"{workload.name}: {'MetaSchedule' if ours else 'our search'} has no kernel")
        return
    (tvm,) = (peer for peer in PEERS if peer.library == "tvm")
    peers = [Peer(_theirs(seed), tvm.library, tvm.environment) for seed in theirs]
    found = measure([workload], peers, settings, backends=[_ours(seed) for seed in ours])
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
    # As a share of our last: the finish may have chosen a kernel whose shortest sample is longer.
    reached = (at for at, secs in curve if secs <= curve[-1][1] * faster.median)
    return Heat(
        workload=workload.name,
        our_seed=our_seed,
        their_seed=their_seed,
        faster=faster.median,
        their_secs=theirs["secs"],
        our_secs=ours["secs"],
        secs_to_theirs=next(reached, None),
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
    """Print a line a workload: medians over its heats, and the worst of them."""
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
                f"{statistics.median(heat.their_secs for heat in mine):.0f}",
                f"{statistics.median(heat.our_secs for heat in mine):.1f}",
                f"{sum(heat.secs_to_theirs is not None for heat in mine)}/{len(mine)}",
                f"{statistics.median(speedup):.0f}",
                f"{min(speedup):.0f}",
            ]
        )
    head = ["workload", "heats", "faster", "lowest", "their s", "our s", "reached", "sooner"]
    print_table("MetaSchedule", [*head, "lowest"], lines, left=(0,))
    faster_mean = geometric_mean(heat.faster for heat in heats)
    speedup_mean = geometric_mean(heat.speedup for heat in heats)
    if faster_mean is not None and speedup_mean is not None:
        print(
            f"geometric means of {len(heats)} heats: {faster_mean:.2f} times as fast,"
            f" {speedup_mean:.0f} times sooner"
        )


if __name__ == "__main__":
    main()
