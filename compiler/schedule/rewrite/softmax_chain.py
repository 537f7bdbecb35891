"""Recognise a sum that is weighted by a softmax.

    M[i] = max(S[i, j])                     # the maximum of a row
    P[i, j] = exp(S[i, j] - M[i])           # the powers
    L[i] = sum(P[i, j])                     # their total
    W[i, j] = P[i, j] / L[i]                # the weights
    O[i, c] = sum(W[i, j] * V[j, c])        # the weighted sum

`S` may be any expression, and `W` may be converted to another type of floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.error_codes import ScheduleErrorCode
from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Call,
    Cast,
    Expr,
    IterVar,
    Load,
    Store,
    Var,
)
from compiler.ir.core.visit import substitute, transform_expr, walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import is_whole_reduction
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.placement import require_movable


@dataclass(frozen=True)
class RowReduction:
    """A reduction of each row: its target, what it reduces, and its iterator along the row."""

    site: PlacedBlock
    form: ReductionForm
    along: IterVar

    @property
    def target(self) -> Load:
        """Return the element that a row is reduced to."""
        return self.form.targets[0]

    @property
    def value(self) -> Expr:
        """Return the value that is reduced."""
        return self.form.values[0]

    @property
    def rows(self) -> tuple[IterVar, ...]:
        """Return the iterators over the dimensions of the target."""
        by_var = {i.var: i for i in self.site.block.iter_vars}
        return tuple(by_var[var] for var in self.target.indices if isinstance(var, Var))


@dataclass(frozen=True)
class SoftmaxChain:
    """A weighted sum and the blocks of the softmax; `weight` is what the sum loads.

    `axis` is the dimension of the powers and of the weights along a row.
    """

    maximum: RowReduction
    powers: PlacedBlock
    total: RowReduction
    weights: PlacedBlock
    sink: RowReduction
    weight: Load
    axis: int

    @property
    def softmax(self) -> tuple[PlacedBlock, ...]:
        """Return the blocks of the softmax in program order."""
        return self.maximum.site, self.powers, self.total.site, self.weights

    @property
    def exponent(self) -> tuple[Expr, Load]:
        """Return the score and the maximum whose difference is the exponent of a power."""
        exponent = _exponent(self.powers)
        assert exponent is not None, "the block was matched"
        return exponent

    @property
    def row_of_sum(self) -> tuple[Expr, ...]:
        """Return the row of the weighted sum's element, by the iterators of the sum."""
        return _without(self.weight.indices, self.axis)

    def inputs(self) -> set[Buffer]:
        """Return the buffers that the scores are computed from."""
        return {node.buffer for node in walk(self.maximum.value) if isinstance(node, Load)}


def find_softmax_chain(scope: BlockScope, sink: PlacedBlock) -> SoftmaxChain:
    """Return the softmax whose results weight a sum.

    Raises:
        ScheduleError: If the sum is not weighted by exactly such a chain.
    """
    return _Matcher(scope).chain(sink)


@dataclass(frozen=True)
class _Matcher:
    scope: BlockScope

    def chain(self, sink: PlacedBlock) -> SoftmaxChain:
        summed = self._row_reduction(sink, "+")
        weight = _weight(summed)
        if weight is None:
            reason = "does not add up products of a weight of its row and another value"
            raise self._refused(sink, reason)
        axis = weight.indices.index(summed.along.var)
        weights = self._producer(weight.buffer, sink)
        quotient = _quotient(weights)
        if quotient is None:
            raise self._refused(weights, "does not divide powers by the total of their row")
        power, divisor = quotient
        powers = self._producer(power.buffer, weights)
        total = self._row_reduction(self._producer(divisor.buffer, weights), "+")
        exponent = _exponent(powers)
        if exponent is None:
            reason = "is not the exponential of a score minus the maximum of its row"
            raise self._refused(powers, reason)
        score, subtrahend = exponent
        maximum = self._row_reduction(self._producer(subtrahend.buffer, powers), "max")
        self._require_row(weights, power, divisor, axis)
        self._require_row(powers, _target(powers), subtrahend, axis)
        summand = _unconverted(total.value)
        if not (isinstance(summand, Load) and summand.buffer == power.buffer):
            raise self._refused(total.site, f"does not add up {power.buffer.name}")
        self._require_reduced(total, summand, axis)
        along_row = _at(maximum, axis)
        iterators = dict(zip(along_row, _target(powers).indices, strict=False))
        if len(along_row) != len(_target(powers).indices) or not _is_same(
            maximum.value, score, iterators
        ):
            reason = f"does not reduce the scores of block {powers.name}"
            raise self._refused(maximum.site, reason)
        matched = SoftmaxChain(maximum, powers, total, weights, summed, weight, axis)
        self._require_alone(matched)
        return matched

    # --- parts ----------------------------------------------------------------------------------

    def _row_reduction(self, site: PlacedBlock, op: str) -> RowReduction:
        """Return a block as a reduction by an operation, over all of one axis."""
        form = None if site.block.init is None else reduction_of(site.block)
        moving = [i for i in site.block.iter_vars if i.kind == "reduce"]
        moving = [i for i in moving if extent_or_unknown(i.extent) > 1] or moving[:1]
        if not isinstance(form, ReductionForm) or len(form.targets) != 1 or len(moving) != 1:
            raise self._refused(site, "is not a reduction over one axis")
        result = form.reducer.results[0]
        target = form.targets[0]
        if not (isinstance(result, BinOp) and result.op == op and is_float(target.buffer.dtype)):
            raise self._refused(site, f"does not reduce floats by {op}")
        if not is_whole_reduction(site):
            reason = "is not proved to reduce each element over all points, once"
            raise self._refused(site, reason, is_proof=True)
        if not set(target.indices) <= {i.var for i in site.block.iter_vars}:
            raise self._refused(site, "does not store at its iterators")
        return RowReduction(site, form, moving[0])

    def _producer(self, buffer: Buffer, consumer: PlacedBlock) -> PlacedBlock:
        writers = self.scope.writers(buffer)
        if len(writers) != 1:
            raise self._refused(consumer, f"reads {buffer.name}, which no single block computes")
        return writers[0]

    def _require_row(self, site: PlacedBlock, element: Load, row: Load, axis: int) -> None:
        """Require that a block works at one element of a row, named by its iterators."""
        indices = _target(site).indices
        iterators = {i.var for i in site.block.iter_vars}
        is_plain = len(set(indices)) == len(indices) and set(indices) <= iterators
        if not is_plain or element.indices != indices or row.indices != _without(indices, axis):
            reason = f"does not access {element.buffer.name} and {row.buffer.name} at its row"
            raise self._refused(site, reason)

    def _require_reduced(self, reduction: RowReduction, element: Load, axis: int) -> None:
        """Require that a reduction takes the elements of its row."""
        if element.indices != _at(reduction, axis):
            reason = f"does not reduce {element.buffer.name} along its rows"
            raise self._refused(reduction.site, reason)

    def _require_alone(self, chain: SoftmaxChain) -> None:
        """Require that only the chain reads its results, which stay inside of the scope."""
        scope = self.scope
        extents = {
            extent_or_unknown(reduction.along.extent)
            for reduction in (chain.maximum, chain.total, chain.sink)
        }
        if len(extents) > 1:
            raise self._refused(chain.sink.site, "adds up rows of another length than the softmax")
        readers = {
            chain.maximum.site: {chain.powers},
            chain.powers: {chain.total.site, chain.weights},
            chain.total.site: {chain.weights},
            chain.weights: {chain.sink.site},
        }
        for site, allowed in readers.items():
            require_movable(scope, site)
            scope.require_local(site)
            scope.require_inputs_settled(site)
            for other in scope.consumers(site):
                if other not in allowed:
                    reason = f"reads what block {site.name} writes, but is no part of the chain"
                    raise self._refused(other, reason)
        scope.require_inputs_settled(chain.sink.site)
        written = {buffer for site in readers for buffer in site.facts.written_buffers()}
        if (chain.inputs() & written) or chain.sink.target.buffer in chain.inputs():
            raise self._refused(chain.maximum.site, "reads what the chain writes")

    def _refused(self, site: PlacedBlock, reason: str, *, is_proof: bool = False) -> ScheduleError:
        code: ScheduleErrorCode = "not_proved" if is_proof else "block_kind"
        return self.scope.refuse(f"block {site.name} {reason}", site.realize, code)


def _target(site: PlacedBlock) -> Load:
    store = site.block.body
    assert isinstance(store, Store), "the block was matched"
    return Load(store.buffer, store.indices)


def _without(indices: tuple[Expr, ...], axis: int) -> tuple[Expr, ...]:
    return (*indices[:axis], *indices[axis + 1 :])


def _at(reduction: RowReduction, axis: int) -> tuple[Expr, ...]:
    """Return the indices of an element of a row, by the iterators of its reduction."""
    row = reduction.target.indices
    return (*row[:axis], reduction.along.var, *row[axis:])


def _weight(summed: RowReduction) -> Load | None:
    """Return the factor of a weighted sum that is at the rows of the result, by its iterators."""
    term = summed.value
    if not (isinstance(term, BinOp) and term.op == "*"):
        return None
    iterators = {i.var: i.kind for i in summed.site.block.iter_vars}
    for side, other in ((term.lhs, term.rhs), (term.rhs, term.lhs)):
        load = _unconverted(side)
        if not isinstance(load, Load) or summed.along.var not in load.indices:
            continue
        is_plain = len(set(load.indices)) == len(load.indices)
        is_other = not any(isinstance(n, Load) and n.buffer == load.buffer for n in walk(other))
        rows = set(load.indices) - {summed.along.var}
        if is_plain and is_other and rows <= iterators.keys() & set(summed.target.indices):
            return load
    return None


def _unconverted(expr: Expr) -> Expr:
    """Return an expression without the conversions between types of floats around it."""
    while isinstance(expr, Cast) and is_float(expr.dtype):
        expr = expr.value
    return expr


def _quotient(site: PlacedBlock) -> tuple[Load, Load] | None:
    """Return the power and the total whose quotient a block stores."""
    store = site.block.body
    quotient = _unconverted(store.value) if isinstance(store, Store) else None
    if not (isinstance(quotient, BinOp) and quotient.op == "/"):
        return None
    power, total = _unconverted(quotient.lhs), _unconverted(quotient.rhs)
    return (power, total) if isinstance(power, Load) and isinstance(total, Load) else None


def _exponent(site: PlacedBlock) -> tuple[Expr, Load] | None:
    """Return the score and the maximum whose difference is the exponent of a block's power."""
    store = site.block.body
    if not isinstance(store, Store) or not isinstance(store.value, Call):
        return None
    call = store.value
    if call.name != "exp" or not isinstance(call.args[0], BinOp) or call.args[0].op != "-":
        return None
    maximum = call.args[0].rhs
    return (call.args[0].lhs, maximum) if isinstance(maximum, Load) else None


def _is_same(expr: Expr, other: Expr, iterators: Mapping[Expr, Expr]) -> bool:
    """Return whether two expressions are the same, after the first one's iterators are renamed."""
    names = {old: new for old, new in iterators.items() if isinstance(old, Var)}
    return variables(expr) <= names.keys() and substitute(expr, names) == other


def undivided(chain: SoftmaxChain) -> Expr:
    """Return the value of the weights without their division by the total."""
    store = chain.weights.block.body
    assert isinstance(store, Store), "the block was matched"

    def step(node: Expr) -> Expr | None:
        return node.lhs if isinstance(node, BinOp) and node.op == "/" else None

    return transform_expr(store.value, step)
