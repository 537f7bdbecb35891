from dataclasses import replace
from typing import Any

import pytest

from compiler import ops
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    FloatImm,
    For,
    IntImm,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.script import parse

TEXT = """
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
"""


def test_names_of_variables_do_not_count() -> None:
    renamed = TEXT.replace("vi", "x").replace("i,", "p,").replace("[i", "[p").replace("A", "In")
    assert structural_equal(parse(TEXT), parse(renamed))
    assert structural_hash(parse(TEXT)) == structural_hash(parse(renamed))


def test_names_of_blocks_count_in_the_hash_only() -> None:
    renamed = TEXT.replace('T.block("B")', 'T.block("C")')
    assert structural_equal(parse(TEXT), parse(renamed))
    assert structural_hash(parse(TEXT)) != structural_hash(parse(renamed))


def test_the_name_of_the_function_does_not_count() -> None:
    func = parse(TEXT)
    other = replace(func, name="g", attrs=(("global_symbol", "g"), ("tir.noalias", True)))
    assert structural_hash(func) == structural_hash(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A[vi, vj]", "A[vj, vi]"),
        ("1.0", "2.0"),
        ("+", "-"),
        ('"float32")', '"float64")'),
        ("(4, 4)", "(4, 8)"),
        ("T.grid(4, 4)", "T.grid(4, 3)"),
        ("1.0", "T.max(1.0, 1.0)"),
        ("            B[", '            T.block_attr({"x": 1})\n            B['),
        ('remap("SS"', 'remap("SR"'),
    ],
)
def test_what_changes_the_computation_counts(old: str, new: str) -> None:
    changed = TEXT.replace(old, new)
    if "float64" in new:
        changed = changed.replace("1.0", "T.float64(1)")
    assert changed != TEXT
    assert not structural_equal(parse(TEXT), parse(changed))
    assert structural_hash(parse(TEXT)) != structural_hash(parse(changed))


def test_loop_kinds_count() -> None:
    serial = "for i in range(4):\n        for j in range(4):"
    nested = TEXT.replace("for i, j in T.grid(4, 4):", serial).replace(
        "        with", "            with"
    )
    nested = nested.replace("            vi", "                vi").replace(
        "            B[", "                B["
    )
    assert structural_equal(parse(TEXT), parse(nested))
    parallel = nested.replace("for i in range(4)", "for i in T.parallel(4)")
    assert not structural_equal(parse(nested), parse(parallel))


def test_annotations_are_a_mapping_whose_values_have_types() -> None:
    body = "            B[vi"
    texts = [
        TEXT.replace(body, f"            T.block_attr({attrs})\n{body}")
        for attrs in (
            '{"a": 1, "b": 2}',
            '{"b": 2, "a": 1}',
            '{"a": 1.0, "b": 2}',
            '{"a": True, "b": 2}',
        )
    ]
    first, swapped, with_float, with_bool = (structural_hash(parse(t)) for t in texts)
    assert first == swapped
    assert len({first, with_float, with_bool}) == 3


def test_a_zero_and_a_negative_zero_differ_but_a_nan_equals_itself() -> None:
    def func(value: float) -> PrimFunc:
        a = make_buffer("A", (1,))
        store = Store(a, (IntImm(0),), FloatImm(value))
        return PrimFunc("f", (a,), BlockRealize((), TRUE, Block("root", (), (), (), store)))

    assert not structural_equal(func(0.0), func(-0.0))
    assert structural_equal(func(float("nan")), func(float("nan")))


def test_free_variables_must_be_the_same() -> None:
    i, j = Var("i"), Var("i")
    assert structural_equal(BinOp("+", i, IntImm(1)), BinOp("+", i, IntImm(1)))
    assert not structural_equal(BinOp("+", i, IntImm(1)), BinOp("+", j, IntImm(1)))


def test_a_hash_of_a_program_with_a_free_variable_is_refused() -> None:
    a = make_buffer("A", (4,))
    store = Store(a, (Var("i"),), FloatImm(0.0))
    func = PrimFunc("f", (a,), BlockRealize((), TRUE, Block("root", (), (), (), store)))
    with pytest.raises(ValueError, match="variable i of f is not defined"):
        structural_hash(func)


def test_the_hash_does_not_change_over_time() -> None:
    # Databases hold these: a change here makes every stored schedule unreachable.
    assert structural_hash(ops.matmul(4, 5, 6)) == structural_hash(ops.matmul(4, 5, 6))
    assert structural_hash(ops.matmul(512, 512, 512)).startswith("08fac7a0dbb50da1")


def test_modules_are_equal_function_by_function() -> None:
    f, g = ops.matmul(4, 4, 4), ops.relu(4)
    assert structural_equal(IRModule((f, g)), IRModule((g, f)))
    assert not structural_equal(IRModule((f,)), IRModule((f, g)))


def test_loops_over_other_variables_differ() -> None:
    a = make_buffer("A", (4, 4))
    i, j = Var("i"), Var("j")
    zero = FloatImm(0.0)
    straight = For(i, IntImm(4), For(j, IntImm(4), Store(a, (i, j), zero)))
    crossed = For(i, IntImm(4), For(j, IntImm(4), Store(a, (j, i), zero)))
    assert not structural_equal(straight, crossed)


def test_what_is_no_program_is_not_compared() -> None:
    untyped: Any = None
    for use in (lambda: structural_equal(untyped, untyped), lambda: structural_hash(untyped)):
        with pytest.raises(TypeError, match="expected a PrimFunc"):
            use()
