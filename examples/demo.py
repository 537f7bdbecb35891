"""The whole workflow: serve, tune three workloads, fetch their kernels, verify them.

Run it with `make demo`. It starts `loopwright serve` on a free loopback port with a new database,
`demo.db`, and uses the public client. It fails if a kernel is wrong, or slower than the default.
The database is kept, so that the dashboard can show the jobs afterwards.
"""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

# Kernels run on one core, so NumPy does, too; its library reads this when it loads.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import loopwright as lw
from examples.cases import Array, Case, cases
from examples.serving import serving
from loopwright.client.client import DEFAULT_URL
from loopwright.kernels.interleaved import time_interleaved
from loopwright.tables import FittedTable
from service.http.pages import HOW_TO_BUILD, is_built

DEFAULT_TRIALS = 200
# Relative to the largest element; sums of 512 or 576 products in float32 stay far below.
TOLERANCE = 1e-5
# Tolerated difference of two measurements of the same kernel.
NOISE = 1.05


@dataclass(frozen=True)
class Result:
    """One row of the table."""

    case: Case
    default_secs: float
    tuned_secs: float
    numpy_secs: float
    peak_gflops: float
    max_error: float
    num_trials: int
    trials_per_sec: float

    @property
    def gflops(self) -> float:
        """The speed of the tuned kernel."""
        return lw.flops(self.case.func) / self.tuned_secs / 1e9

    @property
    def complaints(self) -> list[str]:
        """The failures: a wrong result, or a kernel slower than the default schedule."""
        found = []
        if not self.max_error <= TOLERANCE:
            found.append(f"{self.case.name}: wrong result, largest error {self.max_error:.1e}")
        if self.tuned_secs > self.default_secs * NOISE:
            found.append(f"{self.case.name}: the tuned kernel is slower than the default schedule")
        return found


def main() -> int:
    """Run the demo; return the exit code of the process."""
    options = argparse.ArgumentParser(description=__doc__, prog="make demo")
    options.add_argument("--trials", type=int, default=DEFAULT_TRIALS, help="of each workload")
    options.add_argument("--db", type=Path, default=Path("demo.db"), help="the database to make")
    options.add_argument("--svg", type=Path, help="also draw what is printed")
    chosen = options.parse_args()
    # Without a terminal the table still needs its width, and a log should hold no progress bar.
    console = Console(width=None if sys.stdout.isatty() else 128, record=True)
    started = time.monotonic()
    remove_database(chosen.db)
    target = lw.Target("cpu -num-cores=1")
    console.print(f"target {target.name}")
    with (
        serving(chosen.db) as server,
        # Do not use kernels of earlier runs from the cache.
        tempfile.TemporaryDirectory() as cache,
        lw.Client(server.url, cache=Path(cache)) as client,
    ):
        console.print(f"serving on {server.url} after {server.start_secs:.1f} s")
        results = [tune_and_prove(client, c, target, chosen.trials, console) for c in cases()]
    # A core's clock changes within minutes, so the peak is the best of several samples.
    peak = max(result.peak_gflops for result in results)
    console.print(FittedTable(make_table(results, peak)))
    console.print(f"FMA peak of one core, measured beside the kernels: {peak:.1f} GFLOP/s")
    console.print(f"everything took {time.monotonic() - started:.0f} s")
    complaints = [c for result in results for c in result.complaints]
    for complaint in complaints:
        console.print(f"[red bold]FAILED[/] {complaint}")
    say_what_is_next(console, chosen.db)
    if chosen.svg:
        draw(console, chosen.svg)
    return 1 if complaints else 0


def remove_database(path: Path) -> None:
    """Remove the database of an earlier demo.

    Raises:
        SystemExit: If the file is in use, or is no database.
    """
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=0)) as database:
            # SQLite does this only for the one process that has the file open.
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("PRAGMA user_version = 0")
    except sqlite3.Error as error:
        sys.exit(
            f"error: {path} cannot be made anew: {error}\n"
            "  Stop the server that uses it, or name another file: make demo ARGS='--db other.db'"
        )
    path.unlink()


def say_what_is_next(console: Console, database: Path) -> None:
    """Print how to see the jobs of the demo in a browser, and what else to try."""
    command = os.path.relpath(Path(sys.executable).with_name("loopwright"))
    lines = [
        "",
        "Next: look at these jobs in a browser",
        *([] if is_built() else [f"  {HOW_TO_BUILD}"]),
        f"  {command} serve --db sqlite:///{database}",
        f"  then open {DEFAULT_URL}",
        "While it runs, tune in another terminal:",
        f"  {command} tune matmul:256,256,256",
    ]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def tune_and_prove(
    client: lw.Client, case: Case, target: lw.Target, trials: int, console: Console
) -> Result:
    """Tune a workload on the server, fetch its kernel, check and time it."""
    job = client.tune(case.workload, target=target, max_trials=trials)
    done = job.wait()
    assert done.started_at is not None, done
    assert done.finished_at is not None, done
    tuning_secs = (done.finished_at - done.started_at).total_seconds()
    console.print(
        f"{case.name}, given as {case.given_as}: {done.num_measured} trials in {tuning_secs:.1f} s"
    )

    tuned = client.kernel(case.workload, target=target, fallback=False)
    default = lw.build(case.func, target)
    rng = np.random.default_rng()  # fresh inputs on every run of the demo
    params = tuned.artifact.params
    a, b = (rng.standard_normal(p.shape, dtype="float32") for p in params if not p.is_output)
    out = next(np.full(p.shape, np.nan, p.dtype) for p in params if p.is_output)
    tuned(a, b, out)
    timings = time_interleaved(
        {
            "default": default.bind(a, b, np.empty_like(out)),
            "tuned": tuned.bind(a, b, np.empty_like(out)),
            "numpy": lambda: case.numpy(a, b),
        },
        samples=5,  # the default schedule is slow
    )
    return Result(
        case,
        default_secs=timings["default"].median_secs,
        tuned_secs=timings["tuned"].median_secs,
        numpy_secs=timings["numpy"].median_secs,
        peak_gflops=lw.fma_peak_gflops(target),
        max_error=largest_error(out, case.numpy(a.astype("float64"), b.astype("float64"))),
        num_trials=done.num_measured,
        trials_per_sec=done.num_measured / tuning_secs,
    )


def largest_error(got: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected element; NaN if any is."""
    return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))


def make_table(results: list[Result], peak_gflops: float) -> Table:
    """Return the table of results."""
    table = Table(
        title="One core; times in ms, medians of samples taken in turns in one run", box=SIMPLE_HEAD
    )
    table.add_column("workload", no_wrap=True)
    for name in ("default", "tuned", "NumPy", "x default", "x NumPy", "GFLOP/s", "% of peak"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("trials", "trials/s", "max error"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        table.add_row(
            r.case.name,
            *(f"{1e3 * secs:.3f}" for secs in (r.default_secs, r.tuned_secs, r.numpy_secs)),
            f"[bold]{r.default_secs / r.tuned_secs:.1f}[/]",
            f"{r.numpy_secs / r.tuned_secs:.2f}",
            f"{r.gflops:.1f}",
            f"[bold]{100 * r.gflops / peak_gflops:.0f}[/]",
            str(r.num_trials),
            f"{r.trials_per_sec:.1f}",
            f"{r.max_error:.1e}",
        )
    return table


def draw(console: Console, path: Path) -> None:
    """Write the output as SVG, without external fonts."""
    svg = console.export_svg(title="make demo")
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
