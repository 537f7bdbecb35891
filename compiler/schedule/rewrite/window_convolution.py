"""Recognise a block that convolves images with windows of 3 x 3, in steps of one.

    O[b, o, y, x] += I[b, c, y + p, x + q] * W[o, c, p, q]

The dimensions of each buffer may have any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import canonical
from compiler.ir.core.nodes import BinOp, Block, Buffer, Load, Var

KERNEL = 3

Dimension: TypeAlias = frozenset[Var]
"""The iterators whose sum is the index of a dimension."""


@dataclass(frozen=True, slots=True)
class WindowOperand:
    """A buffer of a convolution, and the names of its dimensions in their order.

    They are `bcyx` for an image, `ocpq` for weights and `boyx` for an output, or another order.
    """

    buffer: Buffer
    axes: str


@dataclass(frozen=True, slots=True)
class WindowConvolution:
    """A convolution: its operands, and the extents of its iterators by their names."""

    image: WindowOperand
    weight: WindowOperand
    output: WindowOperand
    extents: Mapping[str, int]

    @property
    def operands(self) -> tuple[WindowOperand, WindowOperand, WindowOperand]:
        """Return the image, the weights and the output."""
        return self.image, self.weight, self.output


def window_convolution(block: Block) -> WindowConvolution | None:
    """Return the convolution that a reduction computes; None if it computes something else.

    Extents that vary are `UNKNOWN`.
    """
    form = reduction_of(block) if block.init is not None else ""
    if isinstance(form, str) or not _is_sum(form):
        return None
    match form.values[0]:
        case BinOp("*", Load() as lhs, Load() as rhs):
            loads = (lhs, rhs, form.targets[0])
        case _:
            return None
    lhs_dims, rhs_dims, output = (_dimensions(load) for load in loads)
    if len({load.buffer for load in loads}) < len(loads) or not (lhs_dims and rhs_dims and output):
        return None
    by_image = {lhs: (lhs_dims, rhs, rhs_dims), rhs: (rhs_dims, lhs, lhs_dims)}
    for image, (image_dims, weight, weight_dims) in by_image.items():
        names = _names(block, image_dims, output)
        if names is None:
            continue
        convolved = _operand(image, image_dims, names, {"b", "c", "py", "qx"})
        windows = _operand(weight, weight_dims, names, {"o", "c", "p", "q"})
        result = _operand(form.targets[0], output, names, {"b", "o", "y", "x"})
        extents = {names[i.var]: extent_or_unknown(i.extent) for i in block.iter_vars}
        if convolved and windows and result and extents["p"] == extents["q"] == KERNEL:
            return WindowConvolution(convolved, windows, result, extents)
    return None


def _is_sum(form: ReductionForm) -> bool:
    return all(isinstance(r, BinOp) and r.op == "+" for r in form.reducer.results)


def _dimensions(load: Load) -> tuple[Dimension, ...]:
    """Return the iterators of each dimension; nothing if an index is no sum of iterators."""
    dimensions = []
    for index in load.indices:
        form = canonical(index)
        iterators = frozenset(term for term, _ in form.terms if isinstance(term, Var))
        if form.const or len(iterators) < len(form.terms) or any(n != 1 for _, n in form.terms):
            return ()
        dimensions.append(iterators)
    return tuple(dimensions)


def _names(
    block: Block, image: tuple[Dimension, ...], output: tuple[Dimension, ...]
) -> dict[Var, str] | None:
    """Return the names of all iterators of a block; None if it slides no window over an image."""
    reduced = {i.var for i in block.iter_vars if i.kind == "reduce"}
    windows = [dimension for dimension in image if len(dimension) == 2]
    if len(windows) != 2 or any(len(window & reduced) != 1 for window in windows):
        return None
    names: dict[Var, str] = {}
    for window, (position, shift) in zip(windows, (("y", "p"), ("x", "q")), strict=True):
        names |= {var: shift if var in reduced else position for var in window}
    for (var,) in (dimension for dimension in image if len(dimension) == 1):
        names[var] = "c" if var in reduced else "b"
    for (var,) in (dimension for dimension in output if len(dimension) == 1):
        names.setdefault(var, "o")
    is_complete = {i.var for i in block.iter_vars} == set(names)
    return names if is_complete and sorted(names.values()) == sorted("bcopqxy") else None


def _operand(
    load: Load, dimensions: tuple[Dimension, ...], names: Mapping[Var, str], expected: set[str]
) -> WindowOperand | None:
    """Return an operand, if the iterators of its dimensions are these in any order."""
    spelled = ["".join(sorted(names.get(var, "?") for var in d)) for d in dimensions]
    if len(spelled) != len(expected) or set(spelled) != expected:
        return None
    return WindowOperand(load.buffer, "".join(name[-1] for name in spelled))
