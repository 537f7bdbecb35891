"""Mutated ONNX models through the reader, in any number: `make fuzz-models`.

Each model must become a legal graph, or be refused with a `ModelError` that says why. Any other
outcome is a failure. So are more than five seconds of processor time, and growth of a process by
more than 100 MB.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from compiler.executor.cores import available_cores
from compiler.graph.error import ModelError
from compiler.graph.read_onnx import read_onnx
from compiler.graph.verify import verify_graph
from tests.property.fuzzing import Found, run_campaign, try_all
from tests.property.generators.mutated_models import corpus, mutated


def model_of(seed: int, number: int) -> bytes:
    """Return one model, which follows from two numbers."""
    return mutated(Random(f"{seed}:{number}"))


def read(model: bytes) -> str:
    """Read a model; return whether it was accepted or refused.

    Raises:
        AssertionError: If the error of a refused model gives no reason.
        ModelError: If an accepted model is no legal graph.
    """
    try:
        graph = read_onnx(model)
    except ModelError as error:
        return _checked(error)
    verify_graph(graph)
    return "accepted"


def _checked(refusal: ModelError) -> str:
    assert refusal.reason.strip(), "an error says what is wrong"
    return "refused"


def run_models(seed: int, numbers: range) -> Found:
    """Read models in this process."""
    model_of(seed, 0)  # loads what mutations start from
    return try_all(numbers, lambda number: read(model_of(seed, number)))


def main() -> int:
    """Read models on all cores; return an exit code of 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz-models", description=__doc__)
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="read one model, by its number")
    parser.add_argument("--jobs", type=int, default=available_cores())
    args = parser.parse_args()
    sys.stdout.write(f"seed {args.seed}, {len(corpus())} models to begin with\n")
    if args.only is not None:
        sys.stdout.write(read(model_of(args.seed, args.only)) + "\n")
        return 0
    return run_campaign("model", run_models, seed=args.seed, count=args.models, jobs=args.jobs)


if __name__ == "__main__":
    sys.exit(main())
