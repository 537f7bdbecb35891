"""Predicates as bounds on sums of loops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.affine import affine
from compiler.ir.arith.guards import bounds_of, conjuncts, upper_bound
from compiler.ir.core.nodes import TRUE, BinOp, Compare, CompareOp, Expr, IntImm, Logic, Var
from compiler.schedule.legality.guard import conjunction, derived

i, j = Var("i"), Var("j")
EXTENTS = {i: 20, j: 16}
SUM = BinOp("+", BinOp("*", i, IntImm(16)), j)


def test_conjuncts_and_conjunction_undo_each_other() -> None:
    parts = tuple(Compare("<", i, IntImm(n)) for n in (3, 5, 7))
    assert conjuncts(conjunction(parts)) == parts
    assert conjuncts(TRUE) == ()
    assert conjunction(()) == TRUE
    nested = Logic("and", parts[0], Logic("and", parts[1], parts[2]))
    assert conjuncts(nested) == parts


@given(st.sampled_from(["<", "<=", ">", ">="]), st.integers(0, 320))
def test_a_bound_holds_where_its_condition_does(op: CompareOp, limit: int) -> None:
    condition = Compare(op, SUM, IntImm(limit))
    read = upper_bound(condition, EXTENTS)
    assert read is not None
    terms, bound = read
    for a in range(20):
        for b in range(16):
            total = a * 16 + b
            holds = eval(f"total {op} limit", {"total": total, "limit": limit})
            values: dict[object, int] = {i: a, j: b}
            assert (sum(c * values[atom] for atom, c in terms) < bound) == holds


def test_the_tightest_bound_counts() -> None:
    conditions = (Compare("<", SUM, IntImm(300)), Compare("<", SUM, IntImm(288)))
    assert list(bounds_of(conditions, EXTENTS).values()) == [288]


def test_other_conditions_are_no_bounds() -> None:
    condition: Expr = Compare("==", i, j)
    assert upper_bound(condition, EXTENTS) is None
    assert bounds_of((condition,), EXTENTS) == {}


def test_a_quotient_has_the_bound_divided() -> None:
    guards = bounds_of((Compare("<", SUM, IntImm(288)),), EXTENTS)
    quotient = affine(BinOp("//", SUM, IntImm(16)))
    bounds = derived(guards, [quotient], EXTENTS)
    assert sorted(bounds.values()) == [18, 288]
