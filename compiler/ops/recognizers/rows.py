"""Recognize operators on rows, on axes and on elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations

from compiler.ops.recognizers.facts import ProgramFacts, Shape
from compiler.ops.spec import Spec

_UNARY_BY_CALL = {"sigmoid": ("sigmoid", "silu"), "erf": ("erf", "gelu")}
_BINARY = ("add", "multiply", "subtract", "divide", "maximum", "minimum")
# A chosen bound: each order is one program to build and compare; equal extents make many orders.
_MAX_ORDERS = 8


def attentions(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the attentions with queries, keys and values of these shapes."""
    if len(facts.inputs) < 3 or len(facts.output) != 4 or "exp" not in facts.calls:
        return
    q, k, v, *mask = facts.inputs
    if q != facts.output or k != v or len(k) != 4:
        return
    (batch, heads, m, d), (_, kv_heads, n, _) = q, k
    usual = 1 / math.sqrt(d)
    others = [scale for scale in facts.floats if scale > 0 and not _is_close(scale, usual)]
    for scale in (None, *others):
        if heads == kv_heads and not mask:
            for causal in (False, True):
                yield facts.spec("attention", batch, heads, m, n, d, causal=causal, scale=scale)
        elementwise = (facts.integers(b) for b in facts.blocks if not facts.steps(b))
        pasts = sorted(i for i in set().union({0}, *elementwise) if 0 <= i < n)
        for causal, past in ((False, 0), *((True, past) for past in pasts)):
            options = {"causal": causal, "past": past, "mask": bool(mask), "scale": scale}
            if mask in ([], [(batch, 1, m, n)]) and heads % kv_heads == 0:
                sizes = (batch, heads, kv_heads, m, n, d)
                yield facts.spec("grouped_query_attention", *sizes, **options)


def normalizations(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the normalizations of a tensor of this shape."""
    shape, *others = facts.inputs
    if shape != facts.output or facts.reduction is None:
        return
    axes = range(len(shape))
    if not others and "exp" in facts.calls:
        along = "log_softmax" if "log" in facts.calls else "softmax"
        yield from (facts.spec(along, *shape, axis=axis) for axis in reversed(axes))
    if "rsqrt" not in facts.calls or not others:
        return
    for name, count in (("rms_norm", 1), ("layer_norm", 2)):
        parameters, residual = others[:count], others[count:]
        inner = parameters[0]
        axis = len(shape) - len(inner)
        if parameters != [shape[axis:]] * count or residual not in ([], [shape]):
            continue
        for epsilon in _epsilons(facts):
            yield facts.spec(name, *shape, axis=axis, epsilon=epsilon, residual=bool(residual))


def reductions(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the reductions with a result of this shape."""
    if len(facts.inputs) != 1 or facts.reduction is None or len(facts.blocks) > 2:
        return
    (shape,) = facts.inputs
    steps = facts.steps(facts.reduction)
    names: tuple[str, ...] = ("sum", "prod", "max", "min")
    if len(facts.blocks) == 2:
        names = ("mean", "sum", "prod") if facts.has_conversion else ("mean",)
    for axes in combinations(range(len(shape)), len(steps)):
        for keepdims in (False, True):
            if facts.output == _reduced(shape, axes, keepdims=keepdims):
                axis = axes[0] if len(axes) == 1 else axes
                yield from (
                    facts.spec(name, *shape, axis=axis, keepdims=keepdims) for name in names
                )


def transposes(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the permutations of axes with a result of this shape."""
    if len(facts.inputs) != 1 or len(facts.blocks) != 1 or facts.calls or facts.floats:
        return
    (shape,) = facts.inputs
    if len(shape) < 2 or sorted(shape) != sorted(facts.output):
        return
    orders = permutations(reversed(range(len(shape))))
    matching = (order for order in orders if tuple(shape[d] for d in order) == facts.output)
    for _, order in zip(range(_MAX_ORDERS), matching, strict=False):
        yield facts.spec("transpose", *shape, axes=order)


def elementwise(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the elementwise operators."""
    if len(facts.blocks) != 1 or facts.reduction is not None:
        return
    shape, *others = facts.inputs
    if not others and shape == facts.output:
        yield from _unary(facts, shape)
    if len(others) == 1:
        names = ("power",) if facts.calls else _BINARY
        yield from (facts.spec(name, *shape, other=others[0]) for name in names)


def _unary(facts: ProgramFacts, shape: Shape) -> Iterator[Spec]:
    for call in sorted(facts.calls):
        yield from (facts.spec(name, *shape) for name in _UNARY_BY_CALL.get(call, (call,)))
    if "tanh" in facts.calls:
        yield facts.spec("gelu", *shape, approximate="tanh")
    if facts.calls or not facts.floats:
        return
    yield facts.spec("relu", *shape)
    yield facts.spec("negative", *shape)
    slopes = (slope for slope in facts.floats if slope != 0)
    yield from (facts.spec("leaky_relu", *shape, negative_slope=slope) for slope in slopes)
    low, high = facts.floats[0], facts.floats[-1]
    yield facts.spec("clip", *shape, a_min=low, a_max=high)


def _epsilons(facts: ProgramFacts) -> list[float]:
    """Return the constants that may be the epsilon; the usual epsilon as its decimal number."""
    positive = [number for number in facts.floats if number > 0]
    return [1e-5 if _is_close(number, 1e-5) else number for number in positive]


def _is_close(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-6)


def _reduced(shape: Shape, axes: tuple[int, ...], *, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)
