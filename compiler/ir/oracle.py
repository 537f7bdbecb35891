"""The oracle: what an unscheduled program computes, by NumPy, for results to be compared with.

Blocks are evaluated over all their spatial iterators at once, reductions in float64 or int64; a
buffer is rounded to its type when the block that writes it is done. It shares no code with
lowering and code generation. A billion operations take seconds; it is needed once a workload.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.array_expr import ArrayEvaluator, Box, rounded, wide
from compiler.ir.contraction import contract, factors, stepped
from compiler.ir.dtypes import is_float
from compiler.ir.inputs import Roles, param_roles, random_inputs
from compiler.ir.nodes import BinOp, Buffer, Expr, Load, PrimFunc, Store, Var, static_shape
from compiler.ir.tolerance import Mismatch, compare, tolerance
from compiler.ir.unscheduled import OracleError, Stage, stages
from compiler.ir.visit import walk

__all__ = [
    "Mismatch",
    "OracleError",
    "Roles",
    "compare",
    "interpret",
    "param_roles",
    "random_inputs",
    "tolerance",
]

Array: TypeAlias = NDArray[Any]

# Elements that are evaluated at once; about what a cache holds, so that temporaries stay there.
_CHUNK = 1 << 18

_REDUCTIONS: dict[str, np.ufunc] = {
    "+": np.add,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def interpret(func: PrimFunc, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run an unscheduled program.

    Args:
        func: A program as tensor expressions give it: loops around blocks, one block a nest,
            each iterator bound to a loop.
        inputs: The parameters that the program reads, by name; others are not looked at.

    Returns:
        The parameters that the program writes, by name.

    Raises:
        OracleError: If the program is scheduled or otherwise not of that form, an input is
            missing or has another shape, or some element of an output is never written.
    """
    program = stages(func)
    run = _Run(func, inputs)
    with np.errstate(all="ignore"):
        for stage in program:
            run.stage(stage)
    return run.outputs()


class _Run:
    """One run: the buffers in wide types, and which elements of the outputs were written."""

    def __init__(self, func: PrimFunc, inputs: Mapping[str, Array]) -> None:
        self._params = func.buffers
        self._roles = param_roles(func)
        self._memory: dict[Buffer, Array] = {}
        for buffer in (*func.buffers, *func.root.alloc_buffers):
            is_input = buffer in func.buffers and buffer.name in self._roles.inputs
            self._memory[buffer] = _given(buffer, inputs) if is_input else _unwritten(buffer)
        self._written: dict[Buffer, Array] = {
            buffer: np.zeros(static_shape(buffer), bool)
            for buffer in func.buffers
            if buffer.name not in self._roles.inputs
        }

    def outputs(self) -> dict[str, Array]:
        """Return the outputs in their own types."""
        for buffer, mask in self._written.items():
            if not mask.all():
                raise OracleError(
                    f"{int(mask.size - mask.sum())} of {mask.size} elements of output "
                    f"{buffer.name} are never written"
                )
        return {
            buffer.name: self._memory[buffer].astype(buffer.dtype)
            for buffer in self._params
            if buffer.name in self._roles.outputs
        }

    def stage(self, stage: Stage) -> None:
        """Run one block at all points of its iterators."""
        reduction = _Reduction.of(stage)
        for box in _boxes(stage.spatial, _CHUNK):
            if reduction is None or not self._reduce(stage, box, reduction):
                self._step(stage, box)
        for buffer in {store.buffer for store in (*stage.init, *stage.body)}:
            self._memory[buffer][...] = rounded(self._memory[buffer], buffer.dtype)

    def _step(self, stage: Stage, spatial: Box) -> None:
        """Run a block for one point of its reduction iterators after another."""
        for number, point in enumerate(_boxes(stage.reduced, chunk=1)):
            at = self._at(spatial.joined(point))
            for store in (*stage.init, *stage.body) if number == 0 else stage.body:
                self._assign(store, at, at.value(store.value))

    def _reduce(self, stage: Stage, spatial: Box, reduction: _Reduction) -> bool:
        """Run a block that combines its output with terms; False if it can't be done so."""
        start = Box(dict.fromkeys(stage.reduced, 0), dict.fromkeys(stage.reduced, 1))
        at = self._at(spatial.joined(start))
        update = reduction.update
        target = at.view(update.buffer, update.indices)
        if target is None:
            return False
        for store in stage.init:
            self._assign(store, at, at.value(store.value))
        self._mark(update, at)
        combine = _REDUCTIONS[reduction.op]
        for partial in self._partials(stage, spatial, reduction):
            target[...] = combine(target, partial)
        return True

    def _partials(self, stage: Stage, spatial: Box, reduction: _Reduction) -> Iterator[Array]:
        """Yield what the output is combined with, for parts of the reduction that cover it."""
        product = factors(reduction.term) if reduction.op == "+" else None
        steps = stepped(product, stage.reduced) if product and len(product) > 1 else None
        if product and steps is not None:
            whole = {v: n for v, n in stage.reduced.items() if v not in steps}
            for point in _boxes({v: stage.reduced[v] for v in steps}, chunk=1):
                rest = Box(dict.fromkeys(whole, 0), whole)
                at = self._at(spatial.joined(point).joined(rest))
                yield contract(product, at, stage.reduced)
            return
        size = math.prod(spatial.extents.values())
        for tile in _boxes(stage.reduced, max(1, _CHUNK // size)):
            at = self._at(spatial.joined(tile))
            terms = at.value(reduction.term)
            axes = tuple(range(len(spatial.extents), terms.ndim))
            shape = (*terms.shape[: len(spatial.extents)], *tile.extents.values())
            combine = _REDUCTIONS[reduction.op]
            yield combine.reduce(np.broadcast_to(terms, shape), axis=axes, keepdims=True)

    def _assign(self, store: Store, at: ArrayEvaluator, value: Array) -> None:
        target = at.view(store.buffer, store.indices)
        if target is None:
            places = at.places(store.buffer, store.indices)
            self._memory[store.buffer][places] = value
        else:
            target[...] = value
        self._mark(store, at)

    def _mark(self, store: Store, at: ArrayEvaluator) -> None:
        """Note which elements of an output are written."""
        if store.buffer in self._written:
            marks = ArrayEvaluator(self._written, at.box)
            target = marks.view(store.buffer, store.indices)
            if target is None:
                self._written[store.buffer][at.places(store.buffer, store.indices)] = True
            else:
                target[...] = True

    def _at(self, box: Box) -> ArrayEvaluator:
        return ArrayEvaluator(self._memory, box)


class _Reduction:
    """A block of the form `out[...] = op(out[...], term)`, where `term` does not read `out`."""

    def __init__(self, op: str, term: Expr, update: Store) -> None:
        self.op = op
        self.term = term
        self.update = update

    @classmethod
    def of(cls, stage: Stage) -> _Reduction | None:
        """Return the block as a reduction, None if it is none."""
        if not stage.reduced or len(stage.body) != 1:
            return None
        update = stage.body[0]
        old = Load(update.buffer, update.indices)
        places = {node for index in update.indices for node in walk(index)}
        match update.value:
            case BinOp(op, lhs, rhs) if op in _REDUCTIONS and old in (lhs, rhs):
                term = rhs if lhs == old else lhs
            case _:
                return None
        reads = (node.buffer for node in walk(term) if isinstance(node, Load))
        if update.buffer in reads or any(var in places for var in stage.reduced):
            return None
        return cls(op, term, update)


def _boxes(extents: Mapping[Var, int], chunk: int) -> Iterator[Box]:
    """Cut the domain of some iterators into boxes of at most `chunk` points, in order."""
    sizes: dict[Var, int] = {}
    for var in reversed(list(extents)):
        sizes[var] = max(1, min(extents[var], chunk))
        chunk //= sizes[var]
    starts = (range(0, extent, sizes[var]) for var, extent in extents.items())
    for point in itertools.product(*starts):
        first = dict(zip(extents, point, strict=True))
        yield Box(first, {v: min(sizes[v], n - first[v]) for v, n in extents.items()})


def _given(buffer: Buffer, inputs: Mapping[str, Array]) -> Array:
    array = inputs.get(buffer.name)
    if array is None:
        raise OracleError(f"input {buffer.name} is missing")
    if array.shape != static_shape(buffer) or array.dtype != buffer.dtype:
        raise OracleError(
            f"input {buffer.name} is {array.dtype} of shape {array.shape}: expected "
            f"{buffer.dtype} of shape {static_shape(buffer)}"
        )
    return array.astype(wide(buffer.dtype))


def _unwritten(buffer: Buffer) -> Array:
    # NaN spreads, so that what is read before it was written shows in the outputs.
    fill = math.nan if is_float(buffer.dtype) else 1
    return np.full(static_shape(buffer), fill, wide(buffer.dtype))
