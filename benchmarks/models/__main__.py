"""Time models from ONNX files: `make bench-models ARGS="a.onnx b.onnx@x=1x3x48x320"`.

A shape follows its model after `@`, for each input with symbolic axes.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.kernels.results import geometric_mean
from benchmarks.kernels.table import print_table
from benchmarks.models.latency import OURS, ModelLatency, measure_model
from benchmarks.models.peers import PEERS, installed_peers
from benchmarks.report import commit, machine


def main() -> None:
    """Compile and time each model, and print the table."""
    parser = argparse.ArgumentParser(prog="make bench-models", description=__doc__)
    parser.add_argument("models", nargs="+", metavar="MODEL[@INPUT=AxBxC]...")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--trials", type=int, default=0, help="of each model, before it is timed")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    if absent := PEERS.keys() - installed_peers().keys():
        print(f"not installed: {', '.join(sorted(absent))}")
    measured: dict[str, ModelLatency] = {}
    for text in options.models:
        path, shapes = parse_model(text)
        name = Path(path).stem
        try:
            measured[name] = measure_model(
                path, shapes, rounds=options.rounds, trials=options.trials
            )
        except (lw.ModelError, RuntimeError) as error:
            print(f"{name}: {error}")
            continue
        for peer, reason in measured[name].failures.items():
            print(f"{name}: {peer} failed: {reason.splitlines()[0]}")
        print(f"{name}: {', '.join(_line(name, measured[name])[1:])}", flush=True)
    _print(measured, markdown=options.markdown)
    _write(measured)


def parse_model(text: str) -> tuple[str, dict[str, tuple[int, ...]]]:
    """Return the path and the shapes of an argument."""
    path, *parts = text.split("@")
    shapes = (part.split("=") for part in parts)
    return path, {name: tuple(map(int, dims.split("x"))) for name, dims in shapes}


def _print(measured: dict[str, ModelLatency], *, markdown: bool) -> None:
    peers = list(installed_peers())
    title = "milliseconds of CPU time, one thread"
    head = ["model", *peers, OURS, "best/ours", "middle half", "gain", "compile s", "kernels"]
    lines = [_line(name, latency) for name, latency in measured.items()]
    print_table(title, [*head, "arena MB", "error"], lines, left=(0,), markdown=markdown)
    ratios = [statistics.median(s) for x in measured.values() if (s := x.speedups())]
    mean = geometric_mean(ratios)
    if mean is not None:
        print(f"geometric mean of {len(ratios)} ratios to the best peer: {mean:.2f}")


def _line(name: str, latency: ModelLatency) -> Sequence[str]:
    names = [*installed_peers(), OURS]
    cells = [_milliseconds(latency.secs.get(each, ())) for each in names]
    speedups = latency.speedups()
    ratio, spread = "-", "-"
    if speedups:
        low, middle, high = statistics.quantiles(speedups, n=4, method="inclusive")
        ratio, spread = f"{middle:.2f}", f"{low:.2f}-{high:.2f}"
    gains = latency.gains()
    return [
        name,
        *cells,
        ratio,
        spread,
        f"{statistics.median(gains):.2f}" if gains else "-",
        f"{latency.compile_secs:.1f}",
        str(latency.kernels),
        f"{latency.arena_bytes / 1e6:.2f}",
        f"{latency.max_error:.0e}",
    ]


def _milliseconds(secs: Sequence[float]) -> str:
    return f"{statistics.median(secs) * 1e3:.3g}" if secs else "-"


def _write(measured: dict[str, ModelLatency]) -> None:
    """Write the samples of a run, with the machine and the commit."""
    RESULTS.mkdir(exist_ok=True)
    content = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "models": {name: asdict(latency) for name, latency in measured.items()},
    }
    (RESULTS / "models.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
