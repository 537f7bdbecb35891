"""Measure the service around a simulated fleet.

The scheduler, the coordinators, the API and PostgreSQL are the real ones, in processes of their
own. Workers speak the real protocol, but sleep instead of measuring, and answer from the recorded
sets. The small form is `make bench-fleet ARGS="--workers 50 --jobs 10 --seconds 30"`. The command
ends by itself, prints a table in Markdown, and writes `benchmarks/results/fleet.json`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.fleet.fleet import Size, running
from benchmarks.fleet.measure import measure
from benchmarks.fleet.table import write
from service.wire.requests import Strategy


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-fleet", description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--coordinators", type=int, default=3)
    parser.add_argument("--trial-seconds", type=float, default=1.05)
    parser.add_argument("--strategy", type=Strategy, default=Strategy.RANDOM)
    options = parser.parse_args()
    size = Size(
        workers=options.workers,
        jobs=options.jobs,
        secs=options.seconds,
        coordinators=options.coordinators,
        hosts=min(20, options.workers),
        trial_secs=options.trial_seconds,
        kill_secs=min(60.0, options.seconds / 3),
        strategy=options.strategy,
    )
    with tempfile.TemporaryDirectory(prefix="lw-fleet-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(size, folder) as fleet:
            result = measure(fleet)
    write(size, result)


if __name__ == "__main__":
    main()
