"""Benchmarks of a GPU: `python -m benchmarks.gpu checks|products|operators|winners`.

Each command takes at most ten minutes, prints its progress, and writes JSON with the machine, the
driver, clocks, versions and all samples. `--emulate h200 --tiny` runs it on the CPU at small sizes:
its times are estimates, and are marked as such.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.bench_gpu import BenchGpu, NoGpuError, find_gpu
from benchmarks.gpu.cases import OPERATORS, PRODUCTS, TINY_OPERATORS, TINY_PRODUCTS
from benchmarks.gpu.checks import check_device
from benchmarks.gpu.session import Session
from benchmarks.gpu.tuned import tune_and_compare
from benchmarks.gpu.winners import compare_winners
from compiler.backends.cuda.runtime.host_gpus import keep_nvml
from compiler.target.error import TargetError

COMMANDS = ("checks", "products", "operators", "winners")
RESULTS = Path(__file__).parents[1] / "results-gpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code, which is 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--emulate", metavar="GPU", help="an emulated GPU, such as h200")
    parser.add_argument(
        "--tiny", action="store_true", help="small sizes, which an emulator can run"
    )
    parser.add_argument("--trials", type=int, default=512, help="of each operator")
    parser.add_argument("--candidates", type=int, default=24, help="of each operator, in checks")
    parser.add_argument("--max-secs", type=float, default=540.0, help="of the command")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the JSON file")
    args = parser.parse_args(arguments)
    if args.emulate and not args.tiny:
        parser.error("--emulate needs --tiny: the emulator would take days for the full sizes")
    try:
        gpu = find_gpu(args.emulate)
    except (NoGpuError, TargetError) as error:
        print(error, file=sys.stderr)
        return 2
    _run(args, gpu)
    return 0


def _run(args: argparse.Namespace, gpu: BenchGpu) -> None:
    keep_nvml()
    session = Session(args.command, gpu, args.out, args.max_secs)
    session.say(f"{args.command} on {gpu.target.name}")
    if args.command == "checks":
        check_device(session, args.candidates, is_tiny=args.tiny)
    elif args.command == "winners":
        compare_winners(session)
    else:
        is_product = args.command == "products"
        cases = (PRODUCTS, TINY_PRODUCTS) if is_product else (OPERATORS, TINY_OPERATORS)
        tune_and_compare(session, cases[args.tiny], args.trials)
    session.say(f"results are in {session.path}")


if __name__ == "__main__":
    sys.exit(main())
