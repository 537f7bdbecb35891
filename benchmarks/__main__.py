"""Run all benchmarks of the parts, or the named ones: `python -m benchmarks trial_rate`.

Kernels have a separate command, `python -m benchmarks.kernels`.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

FOLDERS = ("compiler", "service", "tuner")
_OTHERS = {
    "candidate_builds",
    "finish_child",
    "fit_roofline",
    "http_load",
    "large_job",
    "many_trials",
    "record",
    "record_demo",
    "recorded_workloads",
    "recorder",
    "search",
    "splits",
    "train_base",
}
MODULES = {
    path.stem: f"benchmarks.{folder}.{path.stem}"
    for folder in FOLDERS
    for path in sorted((Path(__file__).parent / folder).glob("[a-z]*.py"))
    if path.stem not in _OTHERS
}
NAMES = tuple(sorted(MODULES))


def main() -> None:
    """Run benchmarks one after another."""
    parser = argparse.ArgumentParser(prog="make bench-parts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"no benchmark is called {unknown.pop()}; there are {', '.join(NAMES)}")
    for name in names:
        importlib.import_module(MODULES[name]).main()


if __name__ == "__main__":
    main()
