"""Split a padding into a fill and a copy of the interior: `decompose_padding`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.guards import conjuncts, upper_bound
from compiler.ir.arith.iter_map import Extents, Terms, count_of, terms_of, variables
from compiler.ir.arith.simplify import prove, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Conditional,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_region, substitute
from compiler.schedule.error import Refuse, ScheduleError, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock, conditions
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.tree.tree import fresh_block_name, loop_at, loop_path, replace_at


def decompose_padding(func: PrimFunc, block: str, loop: Var) -> tuple[PrimFunc, str]:
    """Split a padding into a block that fills in the constant, before a loop, and the interior.

    The interior runs only for points outside of the padding. Loops that alone bind an iterator are
    shortened; for other loops, the condition becomes the predicate.

    Requires:
        The block is complete and stores `T.if_then_else(condition, value, constant)`. The value may
        be another such choice with the same constant, as in a padding of a padding. The loop is
        around the block, in its scope, under no condition. The condition is a conjunction of bounds
        on the iterators, and not always true; the iterators are independent of one another. No
        other block writes the buffer under the loop, and those that read it there read elements
        that the block has written just before.

    Rewrites:
        for i in range(n + 2):                                 for i in range(n + 2):
            P[i] = if_then_else(1 <= i < n + 1, A[i - 1], 0)  ->   P[i] = 0
                                                               for i in range(n):
                                                                   P[i + 1] = A[i]

    Returns:
        The program, and the name of the block that fills in the constant, `P_pad_const`.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("decompose_padding", func)
    scope, site = scope_of_block(func, block, refuse)
    target = loop_at(loop_path(func, loop, refuse))
    if not site.is_under(target):
        raise refuse(f"loop {loop.name} is not around block {block}", target, "structure")
    padding = _padding(site, refuse)
    _require_alone(scope, site, target)

    name = fresh_block_name(func, f"{block}_pad_const")
    constant = _constant_nest(site, padding, target, name)
    inner = _single_loops(site, target)
    path = loop_path(func, inner[0].var, refuse) if inner else scope.whole_path(site)
    func = replace_at(func, path, _inside_nest(site, padding, inner))
    path = loop_path(func, loop, refuse)
    return replace_at(func, path, seq(constant, path[-1])), name


def can_decompose_padding(func: PrimFunc, block: str, loop: Var) -> bool:
    """Return whether `decompose_padding` would be accepted."""
    try:
        decompose_padding(func, block, loop)
    except ScheduleError:
        return False
    return True


@dataclass(frozen=True)
class _UnpaddedSpan:
    """The values of an iterator outside of the padding."""

    low: int
    extent: int


@dataclass(frozen=True)
class _Padding:
    """A padding and its parts; `conditions` are in terms of loops, and are true inside."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    constant: Expr
    conditions: tuple[Expr, ...]
    spans: tuple[_UnpaddedSpan, ...]


def _padding(site: PlacedBlock, refuse: Refuse) -> _Padding:
    """Analyse a padding block, or refuse."""
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    if site.kind != "complete":
        raise refuse(
            f"block {site.name} is not complete: it reads what it writes",
            site.realize,
            "block_kind",
        )
    if conditions(site):
        raise refuse(f"block {site.name} is under a condition", conditions(site)[0], "structure")
    match site.block.body:
        case Store(buffer, indices, Conditional(condition, value, constant)):
            pass
        case _:
            reason = "does not store one T.if_then_else(condition, value, constant)"
            raise refuse(f"block {site.name} {reason}", site.realize, "block_kind")
    if not isinstance(constant, IntImm | FloatImm):
        raise refuse(
            f"block {site.name} pads with a value that is not a constant",
            site.realize,
            "block_kind",
        )
    parts = [*conjuncts(condition)]
    while isinstance(value, Conditional) and value.otherwise == constant:
        parts += conjuncts(value.condition)
        value = value.then
    inside = (
        *(substitute(part, site.bindings) for part in parts),
        *conjuncts(site.realize.predicate),
    )
    unproved = tuple(c for c in inside if not prove(c, site.extents))
    if not unproved:
        raise refuse(
            f"block {site.name} pads nothing: its condition always holds",
            site.realize,
            "not_proved",
        )
    spans = _inside_spans(site, unproved, refuse)
    return _Padding(buffer, indices, value, constant, unproved, spans)


def _inside_spans(
    site: PlacedBlock, inside: Sequence[Expr], refuse: Refuse
) -> tuple[_UnpaddedSpan, ...]:
    """Return the span of each iterator under the conditions, or refuse."""
    ends: list[tuple[int, int]] = []
    places: dict[Terms, int] = {}
    for number, (iter_var, form) in enumerate(zip(site.block.iter_vars, site.values, strict=True)):
        interval = affine_bounds(form, site.extents)
        if interval is None or not isinstance(iter_var.extent, IntImm):
            reason = f"the range is unknown of iterator {iter_var.var.name}"
            raise refuse(f"{reason} of block {site.name}", site.realize, "not_proved")
        ends.append(interval)
        if form.terms:
            places[terms_of(form)] = number
    for condition in inside:
        bound = upper_bound(condition, site.extents)
        if bound is None:
            reason = (
                f"the condition of block {site.name} is not a conjunction of bounds on iterators"
            )
            raise refuse(reason, site.realize, "not_proved")
        terms, limit = bound
        low = frozenset((atom, -scale) for atom, scale in terms)
        if terms in places:
            number = places[terms]
            const = site.values[number].const
            ends[number] = ends[number][0], min(ends[number][1], limit - 1 + const)
        elif low in places:
            number = places[low]
            const = site.values[number].const
            ends[number] = max(ends[number][0], 1 - limit + const), ends[number][1]
        elif len(terms) != 1 or count_of(next(iter(terms))[0], site.extents) is None:
            reason = f"a part of the condition of block {site.name} is not on a single iterator"
            raise refuse(reason, site.realize, "not_proved")
    if any(low > high for low, high in ends):
        raise refuse(f"the condition of block {site.name} never holds", site.realize, "not_proved")
    return tuple(_UnpaddedSpan(low, high - low + 1) for low, high in ends)


def _require_alone(scope: BlockScope, site: PlacedBlock, target: For) -> None:
    """Refuse if constants that are filled in before the loop could be seen, or be overwritten."""
    for other in scope.sites:
        if other is site or not other.is_under(target):
            continue
        for buffer in site.facts.written_buffers():
            if not other.touches(buffer):
                continue
            is_after = scope.position(other) > scope.position(site)
            if other.writes(buffer) or not (is_after and covers_reads(site, other, buffer)):
                reason = f"block {other.name} may touch {buffer.name} under loop {target.var.name}"
                raise scope.refuse(
                    f"{reason} before block {site.name} has computed it",
                    other.realize,
                    "dependence",
                )


def _single_loops(site: PlacedBlock, target: For) -> tuple[For, ...]:
    """Return the loops at and below one that contain only the block, the outermost first."""
    loops: list[For] = []
    for stmt in reversed(site.path[:-1]):
        if isinstance(stmt, For) and not isinstance(stmt.body, Seq):
            loops.append(stmt)
        else:
            break
        if stmt is target:
            break
    return tuple(reversed(loops))


# The two nests


def _constant_nest(site: PlacedBlock, padding: _Padding, target: For, name: str) -> Stmt:
    """Return serial loops, and a block that fills in the constant, with new variables."""
    loops = (target, *site.loops_inside(target))
    renamed: dict[Var, Expr] = {loop.var: Var(loop.var.name, loop.var.dtype) for loop in loops}
    standing = _units(site, {loop.var for loop in loops})
    iterators = {i.var: Var(i.var.name, i.var.dtype) for i in site.block.iter_vars}
    block = Block(
        name,
        tuple(IterVar(iterators[i.var], i.extent, "spatial") for i in site.block.iter_vars),
        (),
        (),
        Store(
            padding.buffer,
            tuple(substitute(index, dict(iterators)) for index in padding.indices),
            padding.constant,
        ),
    )
    new = {**renamed, **standing}
    nest: Stmt = BlockRealize(
        tuple(substitute(value, new) for value in site.realize.iter_values),
        substitute(site.realize.predicate, new),
        with_regions(block),
    )
    for loop in reversed(loops):
        var = renamed[loop.var]
        assert isinstance(var, Var), "loops are renamed to loops"
        nest = For(var, loop.extent, nest)
    return nest


def _units(site: PlacedBlock, inner: set[Var]) -> dict[Var, Expr]:
    """Return zero for the loops of one iteration that are not among the inner ones."""
    return {
        loop.var: IntImm(0, dtype_of(loop.var))
        for loop in site.loops
        if loop.var not in inner and site.extents[loop.var] == 1
    }


def _inside_nest(site: PlacedBlock, padding: _Padding, loops: Sequence[For]) -> Stmt:
    """Return the loops and the block for the interior."""
    inner = {loop.var for loop in loops}
    units = _units(site, inner)
    iter_vars: list[IterVar] = []
    values: list[Expr] = []
    moved: dict[Var, Expr] = {}
    shifted: dict[Var, Expr] = {}
    extents: dict[Var, int] = dict(site.extents)
    for old, value, span in zip(
        site.block.iter_vars, site.realize.iter_values, padding.spans, strict=True
    ):
        dtype = dtype_of(old.var)
        var = Var(old.var.name, old.var.dtype)
        iter_vars.append(IterVar(var, IntImm(span.extent, dtype_of(old.extent)), "spatial"))
        shifted[old.var] = _plus(var, span.low)
        if isinstance(value, Var) and value in inner and _is_alone(site, value):
            moved[value] = _plus(value, span.low)
            extents[value] = span.extent
            values.append(value)
        else:
            low = IntImm(span.low, dtype)
            values.append(simplify(BinOp("-", substitute(value, units), low), site.extents))
    predicate = _predicate(padding, {**units, **moved}, extents)
    block = _inside_block(site, padding, iter_vars, shifted)
    nest: Stmt = BlockRealize(tuple(values), predicate, block)
    for loop in reversed(loops):
        extent: Expr = loop.extent
        if loop.var in moved:
            extent = IntImm(extents[loop.var], dtype_of(loop.extent))
        nest = replace(loop, extent=extent, body=nest)
    return nest


def _inside_block(
    site: PlacedBlock,
    padding: _Padding,
    iter_vars: Sequence[IterVar],
    shifted: Mapping[Var, Expr],
) -> Block:
    """Return the block for the interior; `shifted` are the old iterators in terms of the new."""
    extents = {i.var: span.extent for i, span in zip(iter_vars, padding.spans, strict=True)}

    def new(expr: Expr) -> Expr:
        return simplify(substitute(expr, shifted), extents)

    return Block(
        site.name,
        tuple(iter_vars),
        tuple(map_region(region, new) for region in site.block.reads),
        tuple(map_region(region, new) for region in site.block.writes),
        Store(padding.buffer, tuple(map(new, padding.indices)), new(padding.value)),
        annotations=site.block.annotations,
    )


def _plus(var: Var, low: int) -> Expr:
    return BinOp("+", var, IntImm(low, dtype_of(var))) if low else var


def _is_alone(site: PlacedBlock, loop: Var) -> bool:
    """Return whether a loop binds a single iterator."""
    return sum(loop in variables(value) for value in site.realize.iter_values) == 1


def _predicate(padding: _Padding, moved: dict[Var, Expr], extents: Extents) -> Expr:
    """Return the conditions that may still fail in the shortened loops."""
    unproved: list[Expr] = []
    for condition in padding.conditions:
        new = substitute(condition, moved)
        if not prove(new, extents):
            unproved.append(condition if new is condition else simplify(new, extents))
    return conjunction(tuple(unproved))
