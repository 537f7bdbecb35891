"""Run ONNX's test cases and list those that do not pass: `make onnx-cases`."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter

from compiler.graph.reference import run_reference
from tests.integration.compiler.graph.onnx_backend.cases import Case, all_cases
from tests.integration.compiler.graph.onnx_backend.kernels import run_kernel
from tests.integration.compiler.graph.onnx_backend.run import Compute, run_case


def main() -> int:
    """Run the cases; return an exit code of 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="make onnx-cases", description=__doc__)
    parser.add_argument("--kernels", action="store_true", help="compile them, too")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    args = parser.parse_args()
    compute: Compute = run_kernel if args.kernels else run_reference
    counts: Counter[tuple[str, str]] = Counter()
    for case in all_cases():
        if args.only in case.name:
            outcome = _outcome(case, compute)
            counts[case.kind, outcome.partition(":")[0]] += 1
            if outcome != "passed":
                sys.stdout.write(f"{case.name}: {outcome}\n")
    for (kind, outcome), count in sorted(counts.items()):
        sys.stdout.write(f"{kind}: {count} {outcome}\n")
    return int(any(outcome in ("wrong", "failed") for _, outcome in counts))


def _outcome(case: Case, compute: Compute) -> str:
    try:
        return run_case(case, compute)
    except Exception:
        return f"failed: {traceback.format_exc(limit=-3)}"


if __name__ == "__main__":
    sys.exit(main())
