"""Report a benchmark: print a table, and write JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import loopwright as lw
from benchmarks import RESULTS
from loopwright.tables import FittedTable

_PACKAGES = ("llvmlite", "numpy", "xgboost-cpu", "distributed", "fastapi", "sqlalchemy")


@dataclass(frozen=True)
class Metric:
    """One quantity with its samples, and its goal."""

    name: str
    unit: str
    samples: tuple[float, ...]
    goal: str = ""

    @property
    def median(self) -> float:
        """The median sample, which documents quote."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The range of the middle half of the samples, as a fraction of the median."""
        if len(self.samples) < 2 or self.median == 0:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.median

    def to_json(self) -> dict[str, Any]:
        """Return the metric with all its samples."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "min": min(self.samples),
            "max": max(self.samples),
            "spread": self.spread,
            "goal": self.goal,
            "samples": self.samples,
        }


def report(benchmark: str, metrics: Sequence[Metric]) -> None:
    """Print metrics, and write them to `benchmarks/results/BENCHMARK.json`."""
    table = Table(title=benchmark, box=SIMPLE_HEAD)
    table.add_column("metric", no_wrap=True)
    for name in ("median", "min", "max", "unit", "spread", "n", "goal"):
        table.add_column(name, justify="left" if name == "unit" else "right", no_wrap=True)
    for m in metrics:
        values = (f"{value:.4g}" for value in (m.median, min(m.samples), max(m.samples)))
        spread = f"{100 * m.spread:.0f}%"
        table.add_row(m.name, *values, m.unit, spread, str(len(m.samples)), m.goal)
    Console(width=None if sys.stdout.isatty() else 120).print(FittedTable(table))
    RESULTS.mkdir(exist_ok=True)
    content = {
        "benchmark": benchmark,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "commit": commit(),
        "metrics": [metric.to_json() for metric in metrics],
    }
    (RESULTS / f"{benchmark}.json").write_text(json.dumps(content, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """Describe the host, with its load: results of a busy machine are less reliable."""
    return {
        "target": lw.Target("cpu").name,
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit() -> str:
    """Return the measured commit, marked if files differ from it."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")
