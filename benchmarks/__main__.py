"""Run all benchmarks, or those named: `python -m benchmarks trial_rate kernels`."""

from __future__ import annotations

import argparse
import importlib

NAMES = ("compile_time", "search_throughput", "trial_rate", "serve_startup", "kernels")


def main() -> None:
    """Run benchmarks one after another."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=NAMES, default=NAMES, metavar="NAME")
    for name in parser.parse_args().names:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
