"""Random tensor expressions, each with the array that NumPy computes for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler import te

Array = NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_UNARY: dict[str, tuple[Callable[[te.Value], te.Value], Callable[[Array], Array]]] = {
    "negative": (lambda x: -x, np.negative),
    "abs": (te.abs, np.abs),
    "exp": (te.exp, np.exp),
    "tanh": (te.tanh, np.tanh),
    "floor": (te.floor, np.floor),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "half": (lambda x: x / 2 + 1, lambda x: x / 2 + 1),
    "clip": (lambda x: te.max(te.min(x, 0.5), -0.5), lambda x: np.clip(x, -0.5, 0.5)),
    "rectify": (lambda x: te.select(x > 0, x, 0), lambda x: np.where(x > 0, x, 0)),
}
_BINARY: dict[str, tuple[Callable[[te.Value, te.Value], te.Value], np.ufunc]] = {
    "add": (lambda x, y: x + y, np.add),
    "subtract": (lambda x, y: x - y, np.subtract),
    "multiply": (lambda x, y: x * y, np.multiply),
    "max": (te.max, np.maximum),
    "min": (te.min, np.minimum),
}
_REDUCE: dict[str, tuple[Callable[..., te.Reduction], Callable[..., Array]]] = {
    "sum": (te.sum, np.sum),
    "max": (te.max, np.max),
    "min": (te.min, np.min),
}


class Grown:
    """A tensor with the array that it should be."""

    def __init__(self, tensor: te.Tensor, array: Array) -> None:
        self.tensor = tensor
        self.array = array


def apply(draw: Draw, known: list[Grown]) -> Grown:
    """Return one more tensor, computed from those before it."""
    a = draw(st.sampled_from(known))
    steps = [unary, binary, reduced, transposed, reversed_, shifted, stacked]
    grow: Callable[[Draw, Grown, list[Grown]], Grown] = draw(st.sampled_from(steps))
    return grow(draw, a, known)


def unary(draw: Draw, a: Grown, _: list[Grown]) -> Grown:
    ours, numpys = _UNARY[draw(st.sampled_from(list(_UNARY)))]
    shape = a.array.shape
    return Grown(te.compute(shape, lambda *i: ours(a.tensor(*i)), name="u"), numpys(a.array))


def binary(draw: Draw, a: Grown, known: list[Grown]) -> Grown:
    ours, numpys = _BINARY[draw(st.sampled_from(list(_BINARY)))]
    b = draw(st.sampled_from(known))
    outer = (*a.array.shape, *b.array.shape)
    if a.array.shape == b.array.shape:
        tensor = te.compute(a.array.shape, lambda *i: ours(a.tensor(*i), b.tensor(*i)), name="b")
        return Grown(tensor, numpys(a.array, b.array))
    if np.prod(outer) > 2000:
        return unary(draw, a, known)
    count = a.array.ndim
    tensor = te.compute(
        outer, lambda *i: ours(a.tensor(*i[:count]), b.tensor(*i[count:])), name="o"
    )
    return Grown(tensor, numpys.outer(a.array, b.array))


def reduced(draw: Draw, a: Grown, known: list[Grown]) -> Grown:
    if a.array.ndim < 2:
        return unary(draw, a, known)
    ours, numpys = _REDUCE[draw(st.sampled_from(list(_REDUCE)))]
    axis = draw(st.integers(0, a.array.ndim - 1))
    first = draw(st.integers(0, a.array.shape[axis] - 1))
    k = te.reduce_axis((first, a.array.shape[axis]), name="k")
    rest = (*a.array.shape[:axis], *a.array.shape[axis + 1 :])
    tensor = te.compute(rest, lambda *i: ours(a.tensor(*i[:axis], k, *i[axis:]), axis=k), name="r")
    part = np.take(a.array, range(first, a.array.shape[axis]), axis)
    return Grown(tensor, numpys(part, axis=axis))


def transposed(draw: Draw, a: Grown, _: list[Grown]) -> Grown:
    order = draw(st.permutations(range(a.array.ndim)))
    shape = [a.array.shape[axis] for axis in order]
    tensor = te.compute(
        shape, lambda *i: a.tensor(*(i[order.index(d)] for d in range(len(order)))), name="t"
    )
    return Grown(tensor, a.array.transpose(order))


def reversed_(_: Draw, a: Grown, __: list[Grown]) -> Grown:
    last = a.array.shape[-1] - 1
    tensor = te.compute(a.array.shape, lambda *i: a.tensor(*i[:-1], last - i[-1]), name="f")
    return Grown(tensor, a.array[..., ::-1])


def shifted(draw: Draw, a: Grown, _: list[Grown]) -> Grown:
    """Move along the last axis; what comes from outside is a constant."""
    by = draw(st.integers(-2, 2))
    n = a.array.shape[-1]

    def element(*i: te.Value) -> te.Value:
        place = i[-1] - by
        inside = te.all(place >= 0, place < n)
        return te.if_then_else(inside, a.tensor(*i[:-1], place), 0.25)

    array = np.full_like(a.array, 0.25)
    if abs(by) < n:
        to = slice(max(by, 0), n + min(by, 0))
        array[..., to] = a.array[..., slice(max(-by, 0), n + min(-by, 0))]
    return Grown(te.compute(a.array.shape, element, name="s"), array)


def stacked(_: Draw, a: Grown, __: list[Grown]) -> Grown:
    """Two outputs of one computation, then joined along a new axis."""
    shape = a.array.shape
    x, y = te.compute(shape, lambda *i: (a.tensor(*i) + 1, a.tensor(*i) * 2), name="xy")
    tensor = te.compute(
        (2, *shape),
        lambda c, *i: te.if_then_else(c < 1, x(*i), y(*i)),
        name="z",
        varargs_names=[f"a{n}" for n in range(len(shape) + 1)],
    )
    return Grown(tensor, np.stack([a.array + 1, a.array * 2]))


def grown(draw: Draw, known: list[Grown], count: int) -> list[Grown]:
    """Return some tensors, and more that are computed from them, none of them large."""
    known = list(known)
    for _ in range(count):
        new = apply(draw, known)
        if new.array.size <= 4000 and new.array.ndim <= 5:
            known.append(new)
    return known
