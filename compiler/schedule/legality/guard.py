"""Predicates of blocks as upper bounds on sums of loops, and the iterations that they exclude.

Example: a loop of 288 iterations is split into `i` below 20 and `j` below 16, so its block has the
predicate `i * 16 + j < 288`. `bounds_of` reads it as the bound 288 on the sum `i * 16 + j`. An
index `(i * 16 + j) // 16` is simplified to `i`; `derived` divides the bound, too, so that `i < 18`
is known. With it, the index reaches 0, ..., 17 and no more, though the loop has 20 iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import covering_sources
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.extents import UNKNOWN, extent_or_unknown
from compiler.ir.arith.guards import conjuncts, upper_bound
from compiler.ir.arith.iter_map import Extents, Guards, Terms, terms_of, variables, variables_of
from compiler.ir.arith.simplify import canonical, equal, normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, BinOp, Compare, Expr, For, IntImm, Logic, Var
from compiler.ir.core.visit import walk
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.range_guard import simplest_bound
from compiler.schedule.index.region import Span, separated, span_of
from compiler.schedule.legality.placed_block import PlacedBlock, conditions

_NOTHING: Extents = {}
# A chosen bound: derived conditions combine again, and their number may grow exponentially.
_MAX_DERIVED = 64


def conjunction(conditions: tuple[Expr, ...]) -> Expr:
    """Join conditions by `and`."""
    total: Expr = TRUE
    for condition in conditions:
        total = condition if total == TRUE else Logic("and", total, condition)
    return total


def derived(guards: Guards, forms: Iterable[Affine], extents: Extents) -> dict[Terms, int]:
    """Return guards, and the bounds that follow for the quotients in some forms.

    If `x < 288`, `x // 16 < 18`. Quotients are written as simplification writes them.
    """
    all_guards = dict(guards)
    if not guards:
        return all_guards
    divisors = {
        node.rhs.value
        for form in forms
        for atom, _ in form.terms
        for node in walk(atom)
        if isinstance(node, BinOp) and node.op in ("//", "%") and isinstance(node.rhs, IntImm)
    }
    pending = list(guards.items())
    while pending and len(all_guards) < _MAX_DERIVED:
        terms, bound = pending.pop()
        total = Affine(tuple(terms), 0).to_expr()
        for divisor in divisors:
            if divisor < 2 or bound % divisor:
                continue
            part = canonical(BinOp("//", total, IntImm(divisor, dtype_of(total))), extents)
            limit = bound // divisor
            if part.terms and not part.const and limit < all_guards.get(terms_of(part), UNKNOWN):
                all_guards[terms_of(part)] = limit
                pending.append((terms_of(part), limit))
    return all_guards


def dense_spans(site: PlacedBlock, fixed: AbstractSet[Var]) -> tuple[Span, ...] | None:
    """Return the span of each iterator while only the loops not `fixed` run.

    Return None unless every point of the spans that lies in the iterators' ranges is proved to run.
    """
    return _dense(site, site.values, [i.extent for i in site.block.iter_vars], fixed)


def dense_box(
    site: PlacedBlock, access: BlockAccess, fixed: AbstractSet[Var], *, is_final: bool = True
) -> tuple[Span, ...] | None:
    """Return the box that an access touches while only the loops not `fixed` run.

    Return None unless every element of the box inside the buffer is proved to be touched.

    Args:
        is_final: Whether all of the reduction must be run for each of the elements.
    """
    forms = site.indices(access)
    limits = access.buffer.shape
    reduced = [
        (value, iter_var.extent)
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
        if is_final and iter_var.kind != "spatial"
    ]
    everything = (*forms, *(value for value, _ in reduced))
    full_box = _dense(site, everything, (*limits, *(n for _, n in reduced)), fixed, access.inner)
    rank = len(forms)
    if full_box is not None and all(
        covers_range(span, n) for span, (_, n) in zip(full_box[rank:], reduced, strict=True)
    ):
        return full_box[:rank]
    # A predicate may exclude points of the reduction, if all other points of it run here.
    if site.realize.predicate == TRUE or any(variables_of(v) & fixed for v, _ in reduced):
        return None
    return _dense(site, forms, limits, fixed, access.inner)


def covers_range(span: Span, extent: Expr) -> bool:
    """Check that a span holds 0, ..., `extent` - 1 in every iteration of the fixed loops."""
    end = span.low.const + span.extent
    return not span.low.terms and span.low.const <= 0 and end >= extent_or_unknown(extent)


def _dense(
    site: PlacedBlock,
    forms: Sequence[Affine],
    limits: Sequence[Expr],
    fixed: AbstractSet[Var],
    inner: Extents = _NOTHING,
) -> tuple[Span, ...] | None:
    """Return the spans of forms if the forms take all values of the spans below the limits."""
    if conditions(site):
        return None
    extents = {**site.extents, **inner} if inner else site.extents
    forms = [separated(form, fixed, extents) for form in forms]
    guards = _cutting_guards(site, forms, limits, extents)
    if guards is None:
        return None

    spans: list[Span] = []
    parts: list[Affine] = []
    sizes: list[int] = []
    for form, limit in zip(forms, limits, strict=True):
        if reaches_limit(form, limit, fixed, site.loops) and _is_alone(form, forms):
            spans.append(Span(Affine((), 0, form.dtype), UNKNOWN))
            continue
        moving = [(a, c) for a, c in form.terms if not variables(a) <= fixed]
        span = span_of(form, fixed, extents)
        if span is None or any(variables(a) & fixed for a, _ in moving):
            return None
        starts = affine_bounds(span.low, extents)
        is_cut = starts is not None and starts[0] >= 0
        size = min(span.extent, extent_or_unknown(limit)) if is_cut else span.extent
        spans.append(span)
        parts.append(Affine(tuple(moving), 0, form.dtype))
        sizes.append(size)

    used = covering_sources(parts, sizes, extents, derived(guards, parts, extents))
    if used is None:
        return None
    form_vars = {var for form in forms for var in variables_of(form)}
    for guard in guards.items():
        is_used = not used.isdisjoint(derived(dict([guard]), parts, extents))
        is_idle = is_used or _is_harmless(guard, forms, limits, extents)
        if not is_idle and not _lets_begin(guard, form_vars, fixed, extents):
            return None
    return tuple(spans)


def _lets_begin(
    guard: tuple[Terms, int], form_vars: AbstractSet[Var], fixed: AbstractSet[Var], extents: Extents
) -> bool:
    """Check that a guard holds in the first iterations of the loops that no form uses."""
    terms, bound = guard
    if any(variables(atom) & fixed or scale < 0 for atom, scale in terms):
        return False
    most = affine_bounds(Affine(tuple(t for t in terms if variables(t[0]) & form_vars), 0), extents)
    return most is not None and most[1] < bound


def _cutting_guards(
    site: PlacedBlock, forms: Sequence[Affine], limits: Sequence[Expr], extents: Extents
) -> dict[Terms, int] | None:
    """Return the bounds that a predicate sets, or None if it has any other condition.

    Conditions that only keep a form below its limit are left out.
    """
    guards: dict[Terms, int] = {}
    for condition in conjuncts(site.realize.predicate):
        if any(_keeps_below(condition, f, x, extents) for f, x in zip(forms, limits, strict=True)):
            continue
        bound = upper_bound(condition, extents)
        if bound is None:
            return None
        guards[bound[0]] = min(bound[1], guards.get(bound[0], bound[1]))
    return guards


def _keeps_below(condition: Expr, form: Affine, limit: Expr, extents: Extents) -> bool:
    """Check that a condition only says that a form is below its limit."""
    if not isinstance(condition, Compare) or condition.op != "<":
        return False
    bounded = normal(condition.lhs, extents) - normal(condition.rhs, extents)
    difference = bounded - (form - normal(limit, extents))
    return not difference.terms and not difference.const


def reaches_limit(form: Affine, limit: Expr, fixed: AbstractSet[Var], loops: Sequence[For]) -> bool:
    """Check that a form takes all values up to a symbolic limit.

    It does if its coarsest split is a loop of enough iterations: `n`, or `n / 4` rounded up if the
    finer splits take 4 values.
    """
    if isinstance(limit, IntImm) or form.const or any(variables(a) & fixed for a, _ in form.terms):
        return False
    extents = {loop.var: loop.extent for loop in loops}
    width = 1
    for atom, scale in sorted(form.terms, key=lambda term: term[1]):
        extent = extents.get(atom) if isinstance(atom, Var) else None
        if extent is None or scale != width:
            return False
        if not isinstance(extent, IntImm):
            dtype = dtype_of(limit)
            rounded = BinOp("+", limit, IntImm(width - 1, dtype))
            enough = BinOp("//", rounded, IntImm(width, dtype)) if width > 1 else limit
            return scale == max(c for _, c in form.terms) and equal(extent, enough)
        width *= extent.value
    return False


def _is_alone(form: Affine, forms: Sequence[Affine]) -> bool:
    """Check that no other form uses a variable of a form."""
    form_vars = variables_of(form)
    return sum(not form_vars.isdisjoint(variables_of(other)) for other in forms) == 1


def _is_harmless(
    guard: tuple[Terms, int], forms: Sequence[Affine], limits: Sequence[Expr], extents: Extents
) -> bool:
    """Check that a guard only keeps forms below their limits."""
    terms, bound = guard
    interval = affine_bounds(Affine(tuple(terms), 0), extents)
    if interval is not None and interval[1] < bound:
        return True
    for form, limit in zip(forms, limits, strict=True):
        if not isinstance(limit, IntImm):
            continue
        if terms_of(form) == terms and bound >= limit.value - form.const:
            return True
        if terms_of(form.scaled(-1)) == terms and bound > form.const:
            return True
        simplest, least = simplest_bound(form, limit.value, extents)
        if terms_of(simplest) == terms and bound >= least:
            return True
    return False
