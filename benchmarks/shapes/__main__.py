"""Time the kernels of a search over a range beside a kernel of each shape, and PyTorch, in turns.

    make bench-shapes
    make bench-shapes ARGS="--trials 256 --trials-of-shape 64 --tune"

All shapes are new to the search over the range. What is not tuned yet is tuned first; `--only-tune`
ends after that, because the times require a quiet machine. A loss is how much longer the artifact
takes than the kernel of the shape, the median of turns.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import RESULTS
from benchmarks.kernels.driver import Measured, Settings, measure
from benchmarks.kernels.results import Row, geometric_mean, ratio
from benchmarks.kernels.traces import tune_missing
from benchmarks.peers.environments import PEERS
from benchmarks.peers.library import NotTunedError
from benchmarks.report import commit, machine
from benchmarks.shapes.dispatched import load_facts, tune_and_store
from benchmarks.workloads.shapes import FAMILIES, SHAPES, UNSEEN_ROWS, Family

MAX_MEAN_LOSS = 0.10
MAX_LOSS = 0.30
"""Goals: the loss in the geometric mean over the shapes of a computation, and of each shape."""


def main() -> None:
    """Tune what is missing, time it, print and store the losses."""
    args = _arguments()
    families = [family for family in FAMILIES if args.only in ("", family.op)]
    for family in families:
        if args.tune or not _is_tuned(family, args.threads):
            tune_and_store(family, args.threads, args.trials, args.seed)
    workloads = [w for w in SHAPES if any(w.op == family.op for family in families)]
    tune_missing(
        workloads, args.threads, trials=args.trials_of_shape, seed=args.seed, again=args.tune
    )
    if args.only_tune:
        return
    cores = tuple(sorted(os.sched_getaffinity(0)))[-args.threads :]
    settings = Settings(args.threads, cores, args.passes, args.rounds)
    torch = [peer for peer in PEERS if peer.name == "torch"]
    measured = measure(workloads, torch, settings, ("tuned", "dispatched"))
    _store(measured, settings)
    for family in families:
        _print(family, measured.rows, load_facts(family, args.threads))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-shapes", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", choices=["", *(f.op for f in FAMILIES)])
    parser.add_argument("--trials", type=int, default=256, help="of the search over a range")
    parser.add_argument("--trials-of-shape", type=int, default=64, help="of that of each shape")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tune", action="store_true", help="tune again what is tuned")
    parser.add_argument("--only-tune", action="store_true", help="time nothing")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def _is_tuned(family: Family, threads: int) -> bool:
    try:
        load_facts(family, threads)
    except NotTunedError:
        return False
    return True


def _store(measured: Measured, settings: Settings) -> None:
    content = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "commit": commit(),
        "versions": measured.versions,
        "skipped": measured.skipped,
        "passes": settings.passes,
        "rounds": settings.rounds,
        "rows": measured.rows,
    }
    path = RESULTS / f"shapes-t{settings.threads}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _print(family: Family, rows: Mapping[str, Row], facts: Mapping[str, Any]) -> None:
    table = Table(title=f"{family.name}: {facts['kernels']} kernels", box=SIMPLE_HEAD)
    for column in ("M", "loss", "quartiles", "kernel of the shape vs torch", "artifact vs torch"):
        table.add_column(column, justify="right")
    slower: list[float] = []
    of_shape: list[float] = []
    of_artifact: list[float] = []
    for rows_of in UNSEEN_ROWS:
        row = rows[family.workload(rows_of).name]
        loss = ratio(row, "tuned", "dispatched")
        against = [ratio(row, backend, "torch") for backend in ("tuned", "dispatched")]
        for found, of_rows in zip((loss, *against), (slower, of_shape, of_artifact), strict=True):
            if found is not None:
                of_rows.append(found.median)
        table.add_row(
            str(rows_of),
            "failed" if loss is None else f"{loss.median - 1:+.1%}",
            "" if loss is None else f"{loss.low - 1:+.1%} to {loss.high - 1:+.1%}",
            *("" if found is None else f"{found.median:.2f}x" for found in against),
        )
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    mean = geometric_mean(slower)
    if mean is None or len(slower) < len(UNSEEN_ROWS):
        sys.exit(f"{family.name}: {len(UNSEEN_ROWS) - len(slower)} shapes failed; see the results")
    reached = mean - 1 <= MAX_MEAN_LOSS and max(slower) - 1 <= MAX_LOSS
    print(
        f"{family.name}: loss {mean - 1:+.1%} in the geometric mean, {max(slower) - 1:+.1%} at most"
        f" (goal: {MAX_MEAN_LOSS:.0%} and {MAX_LOSS:.0%}, {'reached' if reached else 'missed'})"
    )
    if of_shape:
        print(
            f"{family.name}: geometric means against torch: "
            f"{geometric_mean(of_shape):.2f}x of each shape, {geometric_mean(of_artifact):.2f}x "
            "of the artifact"
        )


if __name__ == "__main__":
    main()
