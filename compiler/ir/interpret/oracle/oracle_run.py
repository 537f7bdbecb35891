"""The run of a program by the oracle: statements, and nests of loops as operations on arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from compiler.identity_cache import IdentityCache
from compiler.ir.analysis.running_sum import running_sum
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.library_calls import RegisteredCall, library_call
from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    MatchBuffer,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.interpret.inputs import ParamRoles
from compiler.ir.interpret.oracle.contraction import contract, factors, stepped
from compiler.ir.interpret.oracle.nest import NestReduction, OracleNest
from compiler.ir.interpret.oracle.oracle_frame import Names, OracleFrame, aligned, all_zero
from compiler.ir.interpret.oracle.oracle_memory import (
    nudged,
    unwritten,
)
from compiler.ir.interpret.oracle.oracle_plan import OraclePlan
from compiler.ir.interpret.oracle.scalar_eval import Action, ScalarCode, can_run
from compiler.ir.interpret.oracle.vectorized_eval import (
    LANE,
    Array,
    ArrayEvaluator,
    Box,
    OracleError,
    has_vectors,
    rounded,
)
from compiler.ir.interpret.run_call import CallProblem, run_call
from compiler.ir.interpret.while_steps import WhileSteps

# A chosen limit: an iteration takes 1 to 3 microseconds.
_MAX_WHILE_STEPS = 1 << 22
_REDUCTIONS: dict[str, np.ufunc] = {
    "+": np.add,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class OracleRun:
    """One run: the buffers, in wide types."""

    def __init__(  # noqa: PLR0917
        self,
        func: PrimFunc,
        inputs: Mapping[Buffer, Array],
        plan: OraclePlan,
        roles: ParamRoles,
        nudge: float,
        nudges: Mapping[Buffer, float],
    ) -> None:
        self._nudge = nudge
        self._nudges = nudges
        self._params = func.buffers
        self._roles = roles
        self._plan = plan
        self._memory: dict[Buffer, Array] = dict(inputs)
        for buffer in (*func.buffers, *func.root.alloc_buffers):
            if buffer not in inputs:
                self._memory[buffer] = unwritten(buffer)
        self._vectors: IdentityCache[Expr | Stmt, bool] = IdentityCache()
        self._steps = WhileSteps(OracleError, _MAX_WHILE_STEPS)
        self._wide: dict[Buffer, Array] = {}  # accumulators whose elements are not rounded yet
        self._actions: IdentityCache[Stmt, tuple[Action, dict[Buffer, Array]]] = IdentityCache()
        sums = (running_sum(s.block) for s in walk_stmts(func.body) if isinstance(s, BlockRealize))
        self._running_sums = frozenset(store for store in sums if store is not None)
        # New memory makes the functions that were built on the old memory invalid.
        self._has_own_memory = any(
            isinstance(s, Allocate)
            or (
                isinstance(s, BlockRealize)
                and s is not func.body
                and (s.block.alloc_buffers or s.block.match_buffers)
            )
            for s in walk_stmts(func.body)
        )

    def program(self, body: Stmt) -> None:
        """Run the whole program, one nest of loops after another."""
        for nest in body.stmts if isinstance(body, Seq) else (body,):
            self._stmt(nest, OracleFrame(Box({}, {}), {}))
            for buffer, array in self._wide.items():
                array[...] = self._held(array, buffer)
            self._wide.clear()

    def _held(self, value: Array, buffer: Buffer) -> Array:
        """Return a value as a buffer holds it after a store."""
        stored = rounded(value, buffer.dtype)
        nudge = max(self._nudge, self._nudges.get(buffer, 0.0))
        return nudged(stored, nudge) if nudge and is_float(buffer.dtype) else stored

    def outputs(self) -> dict[str, Array]:
        """Return the outputs converted to their declared types."""
        return {
            buffer.name: self._memory[buffer].astype(buffer.dtype)
            for buffer in self._params
            if buffer.name in self._roles.outputs
        }

    def _value(self, expr: Expr, frame: OracleFrame) -> Array:
        """Return the values of a scalar, which may be a part of a vector."""
        if not self._vectors.find(expr, has_vectors):
            return ArrayEvaluator(self._memory, frame.box, frame.names).value(expr)
        box = frame.box.joined(Box({LANE: 0}, {LANE: 1}))
        array: Array = ArrayEvaluator(self._memory, box, frame.names).value(expr)[..., 0]
        return array

    # Statements

    def _stmt(self, stmt: Stmt, frame: OracleFrame) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store():
                self._store(stmt, frame)
            case Evaluate(value):
                self._effect(value)
            case Let(var, value, body):
                self._stmt(body, frame.named({var: self._value(value, frame)}))
            case Seq(stmts):
                for child in stmts:
                    self._stmt(child, frame)
            case If(condition, then, otherwise):
                holds = self._value(condition, frame)
                for part, lanes in ((then, holds), (otherwise, ~holds)):
                    inside = None if part is None else frame.where(lanes)
                    if part is not None and inside is not None:
                        self._stmt(part, inside)
            case While():
                self._while(stmt, frame)
            case For():
                self._loop(stmt, frame)
            case BlockRealize():
                self._realize(stmt, frame)
            case Allocate(buffer, body):
                self._memory[buffer] = unwritten(buffer)
                self._stmt(body, frame)

    def _effect(self, value: Expr) -> None:
        if not (isinstance(value, Call) and value.name == "assume"):
            name = value.name if isinstance(value, Call) else "an expression"
            raise OracleError(f"the oracle does not know what {name} does")

    def _loop(self, loop: For, frame: OracleFrame) -> None:
        is_outermost = not frame.box.extents
        if is_outermost:
            if self._plan.is_scalar(loop):
                self._scalars(loop, frame.names)
                return
            nest = self._plan.nest(loop)
            if nest is not None and self._nest(nest, frame):
                return
        extent = self._value(loop.extent, frame).item()
        if self._plan.has_lanes(loop, is_outermost=is_outermost):
            room = max(1, self._plan.chunk // math.prod(frame.box.extents.values()))
            for box in Box({loop.var: 0}, {loop.var: extent}).cut(room):
                self._stmt(loop.body, frame.across(box))
        else:
            for index in range(extent):
                self._stmt(loop.body, frame.named({loop.var: np.asarray(index)}))

    def _while(self, loop: While, frame: OracleFrame) -> None:
        if can_run(loop):
            self._scalars(loop, frame.names)
            return
        while self._value(loop.condition, frame).item():
            self._steps.count()
            self._stmt(loop.body, frame)
            for buffer, array in self._wide.items():
                array[...] = self._held(array, buffer)

    def _scalars(self, loop: For | While, names: Names) -> None:
        """Run a loop one scalar at a time."""
        cached = self._actions.get(loop)
        if cached is None:
            widened: dict[Buffer, Array] = {}
            code = ScalarCode(self._memory, widened, self._running_sums, self._steps)
            cached = code.action(loop), widened
            if not self._has_own_memory:
                self._actions.put(loop, cached)
        action, widened = cached
        action({var: value.item() for var, value in names.items()})
        self._wide.update(widened)

    def _realize(self, realize: BlockRealize, frame: OracleFrame) -> None:
        reached = frame.where(self._value(realize.predicate, frame))
        if reached is None:
            return
        block = realize.block
        iterators = zip(block.iter_vars, realize.iter_values, strict=True)
        values = {iterator.var: self._value(v, frame) for iterator, v in iterators}
        inside = reached.named(values)
        for buffer in block.alloc_buffers:
            self._memory[buffer] = unwritten(buffer)
        for match in block.match_buffers:
            inside = inside.named(self._view(match, inside))
        if block.init is not None:
            reduced = [values[i.var] for i in block.iter_vars if i.kind == "reduce"]
            first = inside.where(np.asarray(True) if not reduced else all_zero(reduced))
            if first is not None:
                self._stmt(block.init, first)
        call = library_call(block.body)
        if call is None:
            self._stmt(block.body, inside)
        else:
            self._call(block, call, inside)

    def _call(self, block: Block, call: RegisteredCall, frame: OracleFrame) -> None:
        """Run a registered function; its results are rounded as stored values are."""
        try:
            written = run_call(
                block,
                call,
                self._memory.__getitem__,
                lambda expr: self._value(expr, frame).item(),
            )
        except CallProblem as problem:
            raise OracleError(str(problem)) from problem
        for buffer, elements in written:
            array = self._memory[buffer]
            array[...] = self._held(elements.astype(array.dtype), buffer)

    def _view(self, match: MatchBuffer, frame: OracleFrame) -> Names:
        """Bind a view to the memory of its region; return the variables that it binds."""
        source, view = match.source.buffer, match.buffer
        corner = [self._value(r.minimum, frame).item() for r in match.source.region]
        shape = static_shape(view)
        lead = len(corner) - len(shape)
        key = (
            *corner[:lead],
            *(slice(c, c + n) for c, n in zip(corner[lead:], shape, strict=True)),
        )
        array = self._memory[view] = self._memory[source][(*key, ...)]
        bound = dict(zip(view.strides, (s // array.itemsize for s in array.strides), strict=False))
        if view.elem_offset is not None:
            start = array.__array_interface__["data"][0]
            base = self._memory[source].__array_interface__["data"][0]
            bound[view.elem_offset] = (start - base) // array.itemsize
        return {v: np.asarray(value) for v, value in bound.items() if isinstance(v, Var)}

    def _store(self, store: Store, frame: OracleFrame) -> None:
        box = frame.box
        if self._vectors.find(store, has_vectors):
            lanes = lanes_of(Load(store.buffer, store.indices))
            box = box.joined(Box({LANE: 0}, {LANE: lanes}))
        at = ArrayEvaluator(self._memory, box, frame.names)
        value = at.value(store.value)
        loads_itself = Load(store.buffer, store.indices) in walk(store.value)
        if loads_itself or store in self._running_sums:
            self._accumulate(store, at, value, frame.mask)
        else:
            self._assign(store, at, self._held(value, store.buffer), frame.mask)

    def _accumulate(
        self, store: Store, at: ArrayEvaluator, value: Array, mask: Array | None = None
    ) -> None:
        """Store the new value of an accumulator; a floating-point one is rounded later."""
        if is_float(store.buffer.dtype):
            self._wide[store.buffer] = self._memory[store.buffer]
        else:
            value = rounded(value, store.buffer.dtype)
        self._assign(store, at, value, mask)

    def _assign(self, store: Store, at: ArrayEvaluator, value: Array, mask: Array | None) -> None:
        array = self._memory[store.buffer]
        target = at.view(array, store.indices) if mask is None else None
        if target is not None:
            target[...] = value
            return
        index_arrays = at.places(array, store.indices)
        if mask is not None:
            shape = tuple(at.box.extents.values())
            chosen = np.broadcast_to(aligned(mask, len(shape)), shape)
            index_arrays = tuple(
                np.broadcast_to(index_array, shape)[chosen] for index_array in index_arrays
            )
            value = np.broadcast_to(value, shape)[chosen]
        array[index_arrays] = value

    # Nests

    def _nest(self, nest: OracleNest, frame: OracleFrame) -> bool:
        """Run a nest over its iterators; return False if that is not possible."""
        domain = nest.domain(self._memory, frame.names)
        if domain is None:
            return False
        lanes, steps = domain
        order = None if steps is not None and nest.reduction else self._order(nest, frame)
        for box in lanes.cut(self._plan.chunk):
            inside = OracleFrame(box, frame.names)
            if order is None and steps is not None and self._reduce(nest, inside, steps):
                continue
            order = order or self._order(nest, frame)
            for values in order:
                self._point(nest, inside.named(values))
        return True

    def _order(self, nest: OracleNest, frame: OracleFrame) -> list[dict[Var, Array]]:
        order = nest.steps(self._memory, frame.names)
        if order is None:
            raise OracleError("a loop has too many steps for the oracle")
        return order

    def _point(self, nest: OracleNest, frame: OracleFrame) -> None:
        """Run the block of a nest for one value of the stepped iterators."""
        if nest.init is not None and not any(frame.names[v].item() for v in nest.reduced):
            self._stmt(nest.init, frame)
        self._stmt(nest.body, frame)

    def _reduce(self, nest: OracleNest, frame: OracleFrame, steps: Box) -> bool:
        """Run a nest that combines its output with terms; return False if that is not possible."""
        reduction = nest.reduction
        assert reduction is not None
        update = reduction.update
        at = ArrayEvaluator(self._memory, frame.box, frame.names)
        target = at.view(self._memory[update.buffer], update.indices)
        if target is None:
            return False
        if nest.init is not None and not any(steps.starts[v] for v in nest.reduced):
            self._stmt(nest.init, frame)
        combine = _REDUCTIONS[reduction.op]
        total = target
        for partial in self._partials(reduction, frame, steps):
            total = combine(total, partial.reshape(partial.shape[: target.ndim]))
        self._accumulate(update, at, total)
        return True

    def _partials(
        self, reduction: NestReduction, frame: OracleFrame, steps: Box
    ) -> Iterator[Array]:
        """Yield the values to combine with the output, for parts that cover the reduction."""
        moving = frame.box.extents.keys() | steps.extents.keys()
        product = factors(reduction.term) if reduction.op == "+" else None
        stepped_vars = None
        if product and len(product) > 1:
            stepped_vars = stepped(product, steps.extents.keys(), moving)
        if product and stepped_vars is not None:
            at_once, one_by_one = steps.parted(stepped_vars)
            for point in one_by_one.cut(1):
                box = frame.box.joined(point).joined(at_once)
                at = ArrayEvaluator(self._memory, box, frame.names)
                yield contract(product, at, steps.extents)
            return
        size = math.prod(frame.box.extents.values())
        rank = len(frame.box.extents)
        for tile in steps.cut(max(1, self._plan.chunk // size)):
            at = ArrayEvaluator(self._memory, frame.box.joined(tile), frame.names)
            terms = at.value(reduction.term)
            shape = (*terms.shape[:rank], *tile.extents.values())
            axes = tuple(range(rank, len(shape)))
            combine = _REDUCTIONS[reduction.op]
            yield combine.reduce(np.broadcast_to(terms, shape), axis=axes, keepdims=True)
