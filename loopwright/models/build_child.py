"""A process that builds kernels: tasks come in, and kernels or errors go out, until the end."""

from __future__ import annotations

import os
import pickle
import sys

from compiler.backends.error import BuildError
from loopwright.models.schedules import ProposedKernel, propose_kernel


def main() -> None:
    """Answer requests: the stored cost model first, then the arguments of `propose_kernel`."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what other code prints is no answer
    requests = sys.stdin.buffer
    cost_model: bytes = pickle.load(requests)
    while True:
        try:
            task, name, seed = pickle.load(requests)
        except EOFError:
            return
        answer: ProposedKernel | BuildError
        try:
            answer = propose_kernel(task, name, seed=seed, cost_model=cost_model)
        except BuildError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
