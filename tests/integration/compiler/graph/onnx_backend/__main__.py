"""Run ONNX's test cases and list those with unexpected outcomes: `make onnx-cases`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.integration.compiler.graph.onnx_backend.cases import KINDS, all_cases
from tests.integration.compiler.graph.onnx_backend.compute import COMPUTE, by_reference
from tests.integration.compiler.graph.onnx_backend.expected import deviations, record
from tests.integration.compiler.graph.onnx_backend.run import run_case


def main() -> int:
    """Run the cases; return an exit code of 1 if an outcome is unexpected."""
    parser = argparse.ArgumentParser(prog="make onnx-cases", description=__doc__)
    parser.add_argument("--by", choices=COMPUTE, default="reference", help="how to compute them")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--record", action="store_true", help="write the expected failures anew")
    args = parser.parse_args()
    if args.record and args.only:
        parser.error("--record needs all cases")
    cases = [case for case in all_cases() if args.only in case.name]
    outcomes = {case.name: run_case(case, by_reference) for case in cases}
    if args.record:
        record(outcomes)
    if args.by != "reference":
        cases = [case for case in cases if outcomes[case.name] == "passed"]
        outcomes = {case.name: run_case(case, COMPUTE[args.by]) for case in cases}
    failures = deviations(outcomes)
    for line in failures:
        sys.stdout.write(f"{line}\n")
    for kind in KINDS:
        named = [outcomes[case.name] for case in cases if case.kind == kind]
        counts = Counter(outcome.partition(":")[0] for outcome in named)
        texts = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
        sys.stdout.write(f"{kind}: {len(named)} cases, {', '.join(texts) or 'none'}\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
