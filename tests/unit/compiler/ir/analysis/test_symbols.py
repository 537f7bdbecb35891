"""Symbolic variables: their declared ranges in programs, texts, hashes and specializations."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.analysis.specialize import with_limits
from compiler.ir.analysis.structural import operator_hash, structural_equal, structural_hash
from compiler.ir.analysis.symbols import (
    DEFAULT_RANGE,
    sampled_values,
    size_problem,
    symbol_ranges,
    with_ranges,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.ir.verify.verify_error import VerifyError
from compiler.script import parse


def doubled(first: str = "m", second: str = "n") -> PrimFunc:
    m, n = te.var(first), te.var(second)
    x = te.placeholder((m, n), "float32", name="x")
    return te.create_prim_func([x, te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="y")])


def test_ranges_are_attributes_of_the_program_and_of_its_text() -> None:
    func = with_ranges(doubled(), {"m": (8, 64), "n": 512})
    assert [*symbol_ranges(func).values()] == [(8, 64), (1, 512)]
    assert '"tir_var_lower_bound": {"m": 8}' in func.script()
    assert '"tir_var_upper_bound": {"m": 64, "n": 512}' in func.script()
    assert structural_equal(parse(func.script()), func)
    spelled = doubled().with_attr(
        {"tir_var_upper_bound": {"m": 64, "n": 512}, "tir_var_lower_bound": {"m": 8}}
    )
    assert structural_equal(spelled, func)


def test_a_range_without_a_declaration_is_the_default() -> None:
    assert set(symbol_ranges(doubled()).values()) == {DEFAULT_RANGE}


def test_a_scalar_that_is_no_extent_may_have_any_value() -> None:
    func = parse(SCALED)
    assert symbol_ranges(func) == {}
    assert [*symbol_ranges(with_ranges(func, {"by": (-2, 2)})).values()] == [(-2, 2)]


def test_ranges_are_part_of_the_hash_and_names_are_not() -> None:
    plain, bounded = doubled(), with_ranges(doubled(), {"m": 64})
    assert structural_hash(plain) != structural_hash(bounded)
    assert structural_hash(bounded) != structural_hash(with_ranges(doubled(), {"m": 65}))
    assert structural_hash(bounded) != structural_hash(with_ranges(doubled(), {"n": 64}))
    renamed = with_ranges(doubled("rows", "columns"), {"rows": 64})
    assert structural_equal(bounded, renamed)
    assert structural_hash(bounded) == structural_hash(renamed)
    assert operator_hash(plain) == operator_hash(bounded)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"k": 64}, "tir_var_upper_bound names k: its symbolic integers are: m, n"),
        ({"m": (9, 8)}, "m runs from 9 to 8"),
        ({"m": (0, 8)}, "m runs from 0 to 8: expected a range in 1 to"),
        ({"m": 1 << 40}, "m runs from 1 to 1099511627776: expected a range in 1 to 1073741824"),
    ],
)
def test_a_wrong_range_is_refused(ranges: dict[str, int | tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_ranges(doubled(), ranges)


def test_a_range_that_is_no_pair_of_integers_is_refused() -> None:
    with pytest.raises(TypeError, match="its least and greatest value"):
        with_ranges(doubled(), {"m": (1, 2, 3)})


def test_a_wrong_attribute_is_refused_by_the_verifier() -> None:
    with pytest.raises(VerifyError, match="tir_var_upper_bound is 5"):
        verify(doubled().with_attr("tir_var_upper_bound", 5))


def test_values_out_of_the_range_are_refused_and_name_it() -> None:
    func = with_ranges(doubled(), {"m": (8, 64), "n": 512})
    with pytest.raises(ValueError, match="m can't be 65: main is for 8 to 64"):
        func.specialize({"m": 65})
    half = func.specialize({"m": 8})
    assert [*symbol_ranges(half).values()] == [(1, 512)]
    assert not func.specialize({"m": 8, "n": 8}).attrs[1:]


def test_samples_are_in_the_ranges() -> None:
    func = with_ranges(doubled(), {"m": (8, 10), "n": 2})
    samples = [tuple(n.value for n in values.values()) for values in sampled_values(func)]
    assert samples == [(8, 1), (8, 2), (9, 1), (9, 2), (10, 1), (10, 2)]


def test_limits_have_different_names() -> None:
    symbols = symbol_ranges(with_limits(doubled("n", "n")))
    assert [var.name for var in symbols] == ["n", "size_1"]


def test_a_size_must_be_a_dimension_or_a_parameter() -> None:
    n = te.var("n")
    x = te.placeholder((n + 1,), "float32", name="x")
    y = te.compute((n + 1,), lambda i: x[i] * 2.0, name="y")
    assert "no dimension of an array is n itself" in str(size_problem(te.create_prim_func([x, y])))
    assert size_problem(te.create_prim_func([n, x, y])) is None


SCALED = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), by: T.int32, C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * by
"""
