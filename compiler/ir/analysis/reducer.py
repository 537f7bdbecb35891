"""Analyse reductions: the combined values, the reducer, and the start.

A reducer is a function of an accumulated tuple and a new one, with an identity. If it is
associative, it may be applied to consecutive parts of a reduction, and then to their results. For
other parts it must be commutative, too. (Different rounding of sums and products of floats in
another order is ignored.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.core.dtypes import DType, has_infinity, is_float, is_integer, smallest_and_largest
from compiler.ir.core.nodes import (
    FALSE,
    TRUE,
    BinOp,
    Block,
    Buffer,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import (
    operands_of,
    same_operation,
    substitute,
    transform_expr,
    walk,
    walk_stmts,
)

_KNOWN_REDUCERS = frozenset({"+", "*", "min", "max", "&", "|", "^", "and", "or"})

_X = (Var("x0"), Var("x1"))
_Y = (Var("y0"), Var("y1"))


@dataclass(frozen=True, slots=True)
class Reducer:
    """`results` in terms of the variables `x`, the accumulated values, and `y`, the new values."""

    x: tuple[Var, ...]
    y: tuple[Var, ...]
    results: tuple[Expr, ...]
    is_commutative: bool = True

    def __call__(self, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> tuple[Expr, ...]:
        """Combine two tuples."""
        values = dict(zip((*self.x, *self.y), (*lhs, *rhs), strict=True))
        return tuple(substitute(result, values) for result in self.results)


@dataclass(frozen=True, slots=True)
class ReductionForm:
    """A block that replaces `targets` by `reducer(targets, values)`, starting from `identity`."""

    targets: tuple[Load, ...]
    values: tuple[Expr, ...]
    identity: tuple[Expr, ...]
    reducer: Reducer


def reduction_of(block: Block) -> ReductionForm | str:
    """Return the reduction of a block with an init, or the reason why it is not supported."""
    assert block.init is not None, "the block is a reduction"
    stores = _assignments(block.body)
    inits = _assignments(block.init)
    if stores is None or inits is None:
        return "does more than store values"
    targets = tuple(Load(store.buffer, store.indices) for store in stores)
    if len({target.buffer for target in targets}) < len(targets):
        return "stores to one buffer more than once"
    if any(target.indices != targets[0].indices for target in targets):
        return "stores to its buffers at different indices"
    starts = {Load(store.buffer, store.indices): store.value for store in inits}
    if set(starts) != set(targets):
        return "does not initialise exactly the elements that it updates"
    identity = tuple(starts[target] for target in targets)
    form = _form_of_known_reducer(targets, tuple(store.value for store in stores), identity)
    return "does not combine its values by a known commutative reducer" if form is None else form


def position_reduction(stmt: Stmt) -> ReductionForm | None:
    """Return the reduction of a statement that finds the position of the greatest, or least, value.

    Its identity is assumed: the largest position with the smallest, or largest, value. Of equal
    values the first counts, so that the values may be combined in any order.
    """
    stores = _assignments(stmt)
    if stores is None or len(stores) != 2:
        return None
    index, extreme = (Load(store.buffer, store.indices) for store in stores)
    if not is_integer(index.buffer.dtype) or index.buffer == extreme.buffer:
        return None
    results = (stores[0].value, stores[1].value)
    start = IntImm(int(smallest_and_largest(index.buffer.dtype)[1]), index.buffer.dtype)
    for of_max in (True, False):
        limits = _extremes(of_max, extreme.buffer.dtype)
        form = _argument((index, extreme), results, (start, limits[0])) if limits else None
        if form is not None and form.reducer.is_commutative:
            return form
    return None


def combined_buffers(block: Block) -> frozenset[Buffer]:
    """Return the buffers whose elements a block only combines with values, by known reducers.

    So several threads may run the block one after another. Where the elements start is ignored.
    """
    stores = [node for node in walk_stmts(block.body) if isinstance(node, Store)]
    num_updates = Counter(store.buffer for store in stores if _is_update(store))
    num_stores = Counter(store.buffer for store in stores)
    num_loads = Counter(node.buffer for node in walk(block.body) if isinstance(node, Load))
    combined = {b for b, n in num_updates.items() if n == num_stores[b] == num_loads[b]}
    if block.init is not None and not combined:
        form = reduction_of(block)
        if isinstance(form, ReductionForm):
            return frozenset(target.buffer for target in form.targets)
    return frozenset(combined)


def _is_update(store: Store) -> bool:
    """Return whether a store combines an element with a value by a known reducer."""
    target, value = Load(store.buffer, store.indices), store.value
    if not isinstance(value, BinOp | Logic) or value.op not in _KNOWN_REDUCERS:
        return False
    sides = value.lhs == target, value.rhs == target
    term = value.rhs if sides[0] else value.lhs
    return any(sides) and not _reads(term, {store.buffer})


def _assignments(stmt: Stmt) -> list[Store] | None:
    """Return the stores of a statement with named values inserted; None for other statements.

    A value must not read an element that an earlier store has changed.
    """
    names: dict[Var, Expr] = {}
    while isinstance(stmt, Let):
        names[stmt.var] = substitute(stmt.value, names)
        stmt = stmt.body
    stores: list[Store] = []
    changed: set[Buffer] = set()
    for part in stmt.stmts if isinstance(stmt, Seq) else (stmt,):
        if not isinstance(part, Store) or _reads(part.value, changed):
            return None
        changed.add(part.buffer)
        stores.append(Store(part.buffer, part.indices, substitute(part.value, names)))
    return stores


def _reads(expr: Expr, buffers: set[Buffer]) -> bool:
    return any(isinstance(node, Load) and node.buffer in buffers for node in walk(expr))


def _form_of_known_reducer(
    targets: tuple[Load, ...], results: tuple[Expr, ...], identity: tuple[Expr, ...]
) -> ReductionForm | None:
    parts = [_one(*arguments) for arguments in zip(targets, results, identity, strict=True)]
    operands = [part for part in parts if part is not None]
    target_buffers = {target.buffer for target in targets}
    if len(operands) == len(parts) and not any(
        _reads(term, target_buffers) for _, term in operands
    ):
        x = tuple(Var(f"x{n}") for n in range(len(parts)))
        y = tuple(Var(f"y{n}") for n in range(len(parts)))
        combined = tuple(
            type(op)(op.op, a, b)  # type: ignore[arg-type]
            for (op, _), a, b in zip(operands, x, y, strict=True)
        )
        values = tuple(term for _, term in operands)
        return ReductionForm(targets, values, identity, Reducer(x, y, combined))
    return _argument(targets, results, identity) if len(targets) == 2 else None


def _one(target: Load, result: Expr, start: Expr) -> tuple[BinOp | Logic, Expr] | None:
    """Parse `result` as an operation on a target and the rest; the start must be its identity."""
    if not isinstance(result, BinOp | Logic) or start not in _identities(result.op, target):
        return None
    if result.lhs == target:
        return result, result.rhs
    return (result, result.lhs) if result.rhs == target else None


def _identities(op: str, target: Load) -> tuple[Expr, ...]:
    """Return the literals that are the identity of an operation."""
    dtype = target.buffer.dtype
    match op:
        case "+" | "|" | "^":
            return (_literal(0, dtype),)
        case "*":
            return (_literal(1, dtype),)
        case "&":
            return (_literal(-1, dtype), *_extremes(False, dtype))
        case "and":
            return (TRUE,)
        case "or":
            return (FALSE,)
        case "min" | "max":
            return _extremes(op == "max", dtype)
        case _:
            return ()


def _literal(value: float, dtype: DType) -> Expr:
    return FloatImm(float(value), dtype) if is_float(dtype) else IntImm(int(value), dtype)


def _extremes(of_max: bool, dtype: DType) -> tuple[Expr, ...]:
    if dtype == "bool":
        return ()
    limit = _literal(smallest_and_largest(dtype)[0 if of_max else 1], dtype)
    if not (is_float(dtype) and has_infinity(dtype)):
        return (limit,)
    return limit, FloatImm(float("-inf") if of_max else float("inf"), dtype)


# The position of an extreme value: tuples of a position and a value


def _argument(
    targets: tuple[Load, ...], results: tuple[Expr, ...], identity: tuple[Expr, ...]
) -> ReductionForm | None:
    """Parse two results as the position of the greatest, or least, value and that value."""
    plain = tuple(_plain(result) for result in results)
    for of_max in (True, False):
        starts = _extremes(of_max, targets[1].buffer.dtype)
        if identity[1] not in starts or not _is_initial_position(identity[0], targets[0]):
            continue
        for reducer in _EXTREME_REDUCERS[of_max]:
            bound = dict(zip(reducer.x, targets, strict=True))
            holes: dict[Var, Expr] = dict(bound)
            if not all(map(lambda p, r: _match(_plain(p), r, holes), reducer.results, plain)):
                continue
            values = tuple(holes[hole] for hole in reducer.y)
            if not any(_reads(value, {t.buffer for t in targets}) for value in values):
                return ReductionForm(targets, values, identity, reducer)
    return None


def _is_initial_position(expr: Expr, target: Load) -> bool:
    """Return whether no element is at a position: it is -1, or the largest of its type."""
    if not isinstance(expr, IntImm) or not is_integer(target.buffer.dtype):
        return False
    return expr.value in (-1, smallest_and_largest(target.buffer.dtype)[1])


def _extreme_reducers(of_max: bool) -> tuple[Reducer, ...]:
    """Return the reducers that find a position; they differ in the choice among equal values."""
    strict: CompareOp = ">" if of_max else "<"
    loose: CompareOp = ">=" if of_max else "<="
    (x0, x1), (y0, y1) = _X, _Y
    better, good = Compare(strict, x1, y1), Compare(loose, x1, y1)
    is_tie = Compare("==", x1, y1)
    # Of equal values, take the one at the lower or at the higher position: commutative.
    lower = Logic("or", better, Logic("and", is_tie, Compare("<", x0, y0)))
    higher = Logic("or", better, Logic("and", is_tie, Compare(">", x0, y0)))
    # NaN is no worse than another value. Without NaN, `no worse` is simplified.
    lower_of_no_worse = tuple(
        Logic("or", better, Logic("and", is_no_worse, Compare("<", x0, y0)))
        for is_no_worse in (Not(Compare(strict, y1, x1)), good)
    )
    extreme = BinOp("max" if of_max else "min", x1, y1)
    values: tuple[Expr, ...] = (Select(good, x1, y1), Select(better, x1, y1), extreme)
    whole_pairs = tuple(
        Reducer(_X, _Y, (Select(condition, x0, y0), Select(condition, x1, y1)))
        for condition in lower_of_no_worse
    )
    return whole_pairs + tuple(
        Reducer(_X, _Y, (Select(condition, x0, y0), value), is_commutative)
        for condition, is_commutative in (
            (lower, True),
            (higher, True),
            # Keep the first of equal values, or take the last: not commutative.
            (good, False),
            (better, False),
        )
        for value in values
    )


_EXTREME_REDUCERS = {of_max: _extreme_reducers(of_max) for of_max in (True, False)}
_FLIPPED: dict[CompareOp, CompareOp] = {">": "<", ">=": "<="}
_HOLES = frozenset((*_X, *_Y))


def _plain(expr: Expr) -> Expr:
    """Write comparisons and choices in one normal form."""

    def step(node: Expr) -> Expr | None:
        match node:
            case Compare(">" | ">=" as op, lhs, rhs):
                return Compare(_FLIPPED[op], rhs, lhs)
            case Conditional(condition, then, otherwise):
                return Select(condition, then, otherwise)
            case _:
                return None

    return transform_expr(expr, step)


def _match(pattern: Expr, expr: Expr, holes: dict[Var, Expr]) -> bool:
    """Return whether an expression matches a pattern, and record the values of its holes."""
    if isinstance(pattern, Var) and pattern in _HOLES:
        return holes.setdefault(pattern, expr) == expr
    if not same_operation(pattern, expr):
        return False
    operands = zip(operands_of(pattern), operands_of(expr), strict=True)
    return all(_match(a, b, holes) for a, b in operands)
