"""The dispatcher: a program that calls the kernel of a size, by comparisons with symbolic extents.

    if M <= 4:
        Module.matmul_0(A.data, B.data, C.data)
    elif M <= 90:
        Module.matmul_2(A.data, B.data, C.data)
    else:
        Module.matmul_1(A.data, B.data, C.data)

It is a function of a module whose other functions are the kernels, so that it is printed, verified,
stored and built as any module. All kernels are correct at all sizes; a wrong choice costs time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.ir.analysis.symbols import TIMED, symbolic_vars
from compiler.ir.core.function_calls import call_function
from compiler.ir.core.nodes import TRUE, Block, BlockRealize, Buffer, Compare, If, IntImm, Stmt
from compiler.ir.core.program import IRModule, PrimFunc
from tuner.shapes.sizes import Sizes, is_one, middle

Floats = npt.NDArray[np.float64]

MIN_GAIN = 0.04
"""A comparison of a single size must make it this much faster; of several, this times the square
root of their number together, as the noise of a sum grows. Chosen: twice the usual noise.
"""
_WORST = 1e3


@dataclass(frozen=True)
class KernelLeaf:
    """A leaf of the tree of comparisons: the kernel with this number."""

    number: int


@dataclass(frozen=True)
class SizeComparison:
    """A comparison: sizes of at most `most` go on in `small`, others in `large`."""

    symbol: str
    most: int
    small: Tree
    large: Tree


Tree: TypeAlias = KernelLeaf | SizeComparison


def grow_tree(sizes: Sequence[Sizes], losses: Floats) -> Tree:
    """Return the comparisons that find a fast kernel for each size.

    Args:
        sizes: The sizes at which the kernels were timed.
        losses: The logarithm of the time of each kernel (a row) at each size, as a multiple of the
            best at that size.
    """
    finite = np.where(np.isfinite(losses), losses, _WORST)
    columns = list(range(len(sizes)))
    if len(sizes[0]) > 1:
        return _grow(sizes, finite, columns)
    (symbol,) = sizes[0]
    ones = [column for column in columns if is_one(sizes[column])]
    others = [column for column in columns if column not in ones]
    # A single row has code of its own.
    parts = [_grow(sizes, finite, part) for part in (ones, others) if part]
    tree = SizeComparison(symbol, 1, *parts) if len(parts) == 2 else parts[0]
    return _chain(symbol, _intervals(tree))


def _intervals(tree: Tree) -> list[tuple[int | None, int]]:
    """Return the sorted intervals of one symbol, by their greatest size and the kernel.

    The last has no limit.
    """
    if isinstance(tree, KernelLeaf):
        return [(None, tree.number)]
    *smaller, (_, last) = _intervals(tree.small)
    return [*smaller, (tree.most, last), *_intervals(tree.large)]


def _chain(symbol: str, intervals: Sequence[tuple[int | None, int]]) -> Tree:
    """Return comparisons in the order of sizes; neighbours with one kernel are joined.

    The interval of a single row stays on its own.
    """
    (most, kernel), *others = intervals
    if most is None:
        return KernelLeaf(kernel)
    large = _chain(symbol, others)
    if most > 1 and others[0][1] == kernel:
        return large
    return SizeComparison(symbol, most, KernelLeaf(kernel), large)


def _grow(sizes: Sequence[Sizes], losses: Floats, columns: list[int]) -> Tree:
    sums = losses[:, columns].sum(axis=1)
    kernel = int(np.argmin(sums))
    least = MIN_GAIN * len(columns) ** 0.5
    if float(sums[kernel]) < least:
        return KernelLeaf(kernel)
    best: tuple[float, str, int, list[int], list[int]] | None = None
    for symbol, most in _thresholds(sizes, columns):
        small = [c for c in columns if sizes[c][symbol] <= most]
        large = [c for c in columns if sizes[c][symbol] > most]
        # What the halves lose if each of their sizes has its best kernel: one comparison may only
        # prepare another one.
        loss = sum(_lookahead(sizes, losses, part) for part in (small, large))
        if best is None or loss < best[0]:
            best = loss, symbol, most, small, large
    if best is None or float(sums[kernel]) - best[0] < least:
        return KernelLeaf(kernel)
    _, symbol, most, small, large = best
    trees = (_grow(sizes, losses, part) for part in (small, large))
    return _joined(SizeComparison(symbol, most, *trees))


def _lookahead(sizes: Sequence[Sizes], losses: Floats, columns: list[int]) -> float:
    """Return the loss of sizes with one kernel, or with two of them behind one comparison."""
    alone = float(losses[:, columns].sum(axis=1).min())
    return min(
        (
            sum(
                float(losses[:, part].sum(axis=1).min())
                for part in (
                    [c for c in columns if sizes[c][symbol] <= most],
                    [c for c in columns if sizes[c][symbol] > most],
                )
            )
            for symbol, most in _thresholds(sizes, columns)
        ),
        default=alone,
    )


def _joined(tree: SizeComparison) -> Tree:
    return tree.small if tree.small == tree.large else tree


def _thresholds(sizes: Sequence[Sizes], columns: list[int]) -> Iterator[tuple[str, int]]:
    """Yield the comparisons that separate some of the sizes from the others."""
    for symbol in sizes[columns[0]]:
        values = sorted({sizes[column][symbol] for column in columns})
        for low, high in pairwise(values):
            yield symbol, middle(low, high)


def kernel_of(tree: Tree, sizes: Sizes) -> int:
    """Return the number of the kernel for a size."""
    while isinstance(tree, SizeComparison):
        tree = tree.small if sizes[tree.symbol] <= tree.most else tree.large
    return tree.number


def kernels_in(tree: Tree) -> set[int]:
    """Return the numbers of the kernels in a tree."""
    if isinstance(tree, KernelLeaf):
        return {tree.number}
    return kernels_in(tree.small) | kernels_in(tree.large)


def renumbered(tree: Tree, numbers: Mapping[int, int]) -> Tree:
    """Return a tree whose kernels have other numbers."""
    if isinstance(tree, KernelLeaf):
        return KernelLeaf(numbers[tree.number])
    small, large = renumbered(tree.small, numbers), renumbered(tree.large, numbers)
    return replace(tree, small=small, large=large)


def dispatching_module(func: PrimFunc, kernels: Sequence[PrimFunc], tree: Tree) -> IRModule:
    """Return the module of a dispatcher and the kernels that it calls.

    Args:
        func: The symbolic program.
        kernels: Its schedules, by their numbers in the tree.
        tree: The comparisons.
    """
    numbers = sorted(kernels_in(tree))
    names = {number: f"{func.name}_{position}" for position, number in enumerate(numbers)}
    functions = [_untimed(kernels[number], names[number]) for number in numbers]
    args = [param.data if isinstance(param, Buffer) else param for param in func.params]
    symbols = {var.name: var for var in symbolic_vars(func)}

    def statement(node: Tree) -> Stmt:
        if isinstance(node, KernelLeaf):
            return call_function(names[node.number], args)
        symbol = symbols[node.symbol]
        assert symbol.dtype != "handle", "an extent is an integer"
        is_small = Compare("<=", symbol, IntImm(node.most, symbol.dtype))
        return If(is_small, statement(node.small), statement(node.large))

    root = Block("root", (), (), (), statement(tree))
    dispatcher = replace(_untimed(func, func.name), body=BlockRealize((), TRUE, root))
    return IRModule((*functions, dispatcher))


def _untimed(func: PrimFunc, name: str) -> PrimFunc:
    attrs = tuple(
        (key, name if key == "global_symbol" else value)
        for key, value in func.attrs
        if key != TIMED
    )
    return replace(func, name=name, attrs=attrs)
