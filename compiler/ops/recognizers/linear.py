"""Recognize matrix products, with or without a bias and an activation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from compiler.ops.recognizers.facts import ProgramFacts
from compiler.ops.spec import Spec

# The activations by the function that they call; other activations call none.
_BY_CALL = {
    "erf": ("gelu",),
    "sigmoid": ("silu", "sigmoid"),
    "tanh": ("tanh", "gelu_tanh"),
}
_CALLING_NONE = ("relu", "leaky_relu")


def products(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the products with operands of these shapes."""
    if len(facts.inputs) not in {2, 3} or not facts.steps_of_reduction():
        return
    a, b, *bias = facts.inputs
    if not 2 <= len(facts.output) == len(a) == len(b):
        return
    *batch, m, n = facts.output
    (k, *more) = facts.steps_of_reduction()
    if more or a[:-2] != tuple(batch) or b[:-2] != tuple(batch) or bias not in ([], [(n,)]):
        return
    ways = product((False, True), (False, True), epilogues(facts, 1 + len(bias)))
    for transpose_a, transpose_b, epilogue in ways:
        shapes = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
        if (a[-2:], b[-2:]) == shapes:
            yield facts.spec(
                "matmul",
                *(m, n, k),
                batch=tuple(batch),
                transpose_a=transpose_a,
                transpose_b=transpose_b,
                bias=bool(bias),
                **epilogue,
            )


def epilogues(facts: ProgramFacts, num_blocks: int) -> Iterator[dict[str, Any]]:
    """Yield the options of epilogues that may follow `num_blocks` blocks."""
    num_more = len(facts.blocks) - num_blocks
    for activation in _activations(facts, num_more - facts.has_conversion):
        yield {"activation": activation}
    if facts.has_conversion:  # without it, sums have the type of the program
        for activation in _activations(facts, num_more):
            yield {"activation": activation, "acc_dtype": facts.dtype}


def _activations(facts: ProgramFacts, num_activations: int) -> tuple[str | None, ...]:
    """Return the activations that so many blocks may compute."""
    if num_activations == 0:
        return (None,)
    if num_activations != 1:
        return ()
    called = [_BY_CALL[name] for name in facts.calls if name in _BY_CALL]
    return called[0] if called else _CALLING_NONE
