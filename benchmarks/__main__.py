"""Run all benchmarks, or those named: `python -m benchmarks trial_rate kernels`."""

from __future__ import annotations

import argparse
import importlib

NAMES = ("compile_time", "language", "search_throughput", "trial_rate", "serve_startup", "kernels")


def main() -> None:
    """Run benchmarks one after another."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"no benchmark is called {unknown.pop()}; there are {', '.join(NAMES)}")
    for name in names:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
