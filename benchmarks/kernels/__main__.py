"""Time kernels and other libraries in turns; print and store a table.

A workload without a stored schedule is tuned first. `--check` times the stored schedules again, and
compares their ratios to NumPy with the last stored run. It exits with 1 if a kernel became slower.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.kernels.driver import Measured, Settings, measure
from benchmarks.kernels.metaschedule import tune_with_metaschedule
from benchmarks.kernels.results import changes, failures
from benchmarks.kernels.table import print_changes, print_rows
from benchmarks.kernels.traces import tune_missing
from benchmarks.peers.environments import PEERS, Peer
from benchmarks.report import commit, machine
from benchmarks.workloads.table import select


def main() -> None:
    """Run the benchmark."""
    args = _arguments()
    path = RESULTS / f"kernels-t{args.threads}.json"
    if args.show:
        _print(json.loads(path.read_text(encoding="utf-8")), markdown=args.markdown)
        return
    settings = Settings(
        args.threads, _cores(args), args.passes, args.rounds, realtime=args.realtime
    )
    if args.check:
        sys.exit(_check(path, args, settings))
    tune_missing(args.workloads, args.threads, trials=args.trials, seed=args.seed, again=args.tune)
    if args.metaschedule:
        core = settings.cores[-1]
        tune_with_metaschedule(args.workloads, args.metaschedule, args.threads, core)

    def store(measured: Measured) -> None:
        _store(path, measured, settings)

    measure(args.workloads, args.peers, settings, after_pass=store)
    _print(json.loads(path.read_text(encoding="utf-8")))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    names = ",".join(peer.name for peer in PEERS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workloads", default="public,seed", help="names and groups; or all")
    parser.add_argument("--peers", default=names, help=f"of {names}")
    parser.add_argument("--tune", action="store_true", help="tune again what has a schedule too")
    parser.add_argument("--trials", type=int, default=200, help="when tuning")
    parser.add_argument("--seed", type=int, default=0, help="when tuning")
    parser.add_argument("--metaschedule", type=int, metavar="TRIALS", help="tune TVM's kernels too")
    parser.add_argument("--passes", type=int, default=Settings.passes)
    parser.add_argument("--rounds", type=int, default=Settings.rounds, help="in a pass")
    parser.add_argument("--cores", help="where it runs, such as 0,1; by default the last ones")
    parser.add_argument("--realtime", action="store_true", help="nothing else runs beside a sample")
    parser.add_argument("--check", action="store_true", help="compare with the last stored run")
    parser.add_argument("--show", action="store_true", help="print the last stored run")
    parser.add_argument("--markdown", action="store_true", help="with --show: as Markdown")
    args = parser.parse_args()
    try:
        args.workloads = select(args.workloads)
        args.peers = _peers(args.peers)
    except ValueError as error:
        parser.error(str(error))
    return args


def _peers(words: str) -> list[Peer]:
    by_name = {peer.name: peer for peer in PEERS}
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    if unknown := [word for word in wanted if word not in by_name]:
        raise ValueError(f"no peer is called {unknown[0]!r}; there are {', '.join(by_name)}")
    return [by_name[word] for word in wanted]


def _cores(args: argparse.Namespace) -> tuple[int, ...]:
    if args.cores:
        return tuple(int(core) for core in args.cores.split(","))
    return tuple(sorted(os.sched_getaffinity(0))[-args.threads :])


def _check(path: Path, args: argparse.Namespace, settings: Settings) -> int:
    """Return the exit status of a regression check."""
    if not path.exists():
        print(f"there is no earlier run to compare with: {path}")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    workloads = [w for w in args.workloads if w.name in before["workloads"]]
    numpy = [peer for peer in PEERS if peer.name == "numpy"]
    measured = measure(workloads, numpy, settings, backends=("tuned",))
    found = changes(before["workloads"], measured.rows)
    print_changes(found)
    slower = [change.name for change in found if change.is_slower]
    print(f"slower than on {before['at']}: {', '.join(slower) or 'nothing'}")
    return 1 if slower else 0


def _store(path: Path, measured: Measured, settings: Settings) -> None:
    """Replace older rows by those of a run."""
    known: dict[str, Any] = {}
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
    made_by = commit()
    rows = {name: {**row, "commit": made_by} for name, row in measured.rows.items()}
    content = {
        "benchmark": "kernels",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {**known.get("versions", {}), **measured.versions},
        "commit": made_by,
        "settings": vars(settings),
        "skipped": measured.skipped,
        "workloads": {**known.get("workloads", {}), **rows},
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _print(content: dict[str, Any], *, markdown: bool = False) -> None:
    threads = content["settings"]["threads"]
    title = f"{content['machine']['cpu']}, {threads} thread(s), {content['at']}"
    print_rows(title, content["workloads"], markdown=markdown)
    for name, reason in content["skipped"].items():
        print(f"{name}: {reason}")
    for (backend, error), names in failures(content["workloads"]).items():
        print(f"{backend}: {error} ({', '.join(names)})")


if __name__ == "__main__":
    main()
