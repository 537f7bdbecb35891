"""What is loaded and does not change in a loop is loaded before it, if the loop surely loads it."""

from __future__ import annotations

import pytest

from compiler.driver import lower
from compiler.ir.core.nodes import For, IntImm, Let, Load, Stmt
from compiler.ir.core.visit import walk, walk_stmts
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation

PROGRAM = """
@T.prim_func
def main(
    A: T.Buffer((5, 7), "float32"), S: T.Buffer((5,), "float32"),
    W: T.Buffer((5,), "int32"), B: T.Buffer((5, 7), "float32")
):
    for i in range(5):
        for j in {kind}(7):
            {body}
"""


def lowered(body: str, kind: str = "range") -> Stmt:
    func = parse(PROGRAM.format(body=body, kind=kind))
    check_against_evaluation(func)
    return lower(func, level(3))


def loads_in_innermost_loop(stmt: Stmt) -> list[str]:
    loops = [node for node in walk_stmts(stmt) if isinstance(node, For)]
    return sorted(node.buffer.name for node in walk(loops[-1]) if isinstance(node, Load))


@pytest.mark.parametrize("kind", ["range", "T.unroll", "T.vectorized"])
def test_what_does_not_change_is_evaluated_before_the_loop(kind: str) -> None:
    stmt = lowered("B[i, j] = A[i, j] * T.rsqrt(S[i] * S[i] + T.float32(1))", kind)
    assert loads_in_innermost_loop(stmt) == ["A"]
    assert sum(isinstance(node, Let) for node in walk_stmts(stmt)) == 1


def test_what_no_loop_changes_leaves_all_loops() -> None:
    stmt = lowered("B[i, j] = A[i, j] * S[2]")
    assert isinstance(stmt, Let)


def test_an_index_is_loaded_before_the_loop() -> None:
    stmt = lowered("B[i, j] = A[T.min(T.max(W[i], 0), 4), j]")
    assert loads_in_innermost_loop(stmt) == ["A"]


def test_what_the_loop_writes_stays() -> None:
    stmt = lowered("B[i, j] = A[i, j] + B[i, 3]")
    assert loads_in_innermost_loop(stmt) == ["A", "B"]


def test_a_load_under_a_condition_stays() -> None:
    guarded = "B[i, j] = T.if_then_else(j < i, S[i - 1], A[i, j])"
    assert loads_in_innermost_loop(lowered(guarded)) == ["A", "S"]


def test_a_statement_under_a_condition_stays() -> None:
    guarded = "if j < i:\n                B[i, j] = S[i - 1]"
    assert loads_in_innermost_loop(lowered(guarded)) == ["S"]


def test_a_condition_that_does_not_change_moves_as_a_whole() -> None:
    whole = "B[i, j] = A[i, j] + T.if_then_else(0 < i, S[i - 1], T.float32(0))"
    assert loads_in_innermost_loop(lowered(whole)) == ["A"]


def test_a_loop_that_may_not_run_keeps_its_loads() -> None:
    text = PROGRAM.format(body="B[i, j] = S[i - 1]", kind="range").replace("range(7)", "range(i)")
    func = parse(text)
    check_against_evaluation(func)
    assert loads_in_innermost_loop(lower(func, level(3))) == ["S"]


ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 7), "float32"), S: T.Buffer((6,), "float32"),
         B: T.Buffer((6, 7), "float32")):
    for i in range({tiles}):
        for j in T.vectorized(7):
            for r in T.unroll({rows}):
                B[i * {rows} + r, j] = A[i * {rows} + r, j] * {scale}
"""
COSTLY = "T.rsqrt(S[i * {rows} + r] * S[i * {rows} + r] + T.float32(1))"


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_costly_values_of_unrolled_rows_are_evaluated_before_the_columns(rows: int) -> None:
    scale = COSTLY.format(rows=rows)
    func = parse(ROWS.format(tiles=6 // rows, rows=rows, scale=scale))
    check_against_evaluation(func)
    stmt = lower(func, level(3))
    assert set(loads_in_innermost_loop(stmt)) == {"A"}
    assert sum(isinstance(node, Let) for node in walk_stmts(stmt)) == rows


def test_an_unrolled_loop_without_costly_values_stays() -> None:
    func = parse(ROWS.format(tiles=2, rows=3, scale="S[i * 3 + r]"))
    check_against_evaluation(func)
    assert sum(isinstance(node, For) for node in walk_stmts(lower(func, level(3)))) == 3


def test_a_costly_value_of_each_column_stays() -> None:
    func = parse(ROWS.format(tiles=2, rows=3, scale="T.exp(A[i * 3 + r, j])"))
    check_against_evaluation(func)
    assert sum(isinstance(node, For) for node in walk_stmts(lower(func, level(3)))) == 3


def test_many_nested_loops_of_one_iteration_take_no_longer_than_their_number() -> None:
    """A visit of each loop body twice would take 2 ** 40 visits."""
    heads = [f"{' ' * (4 + n)}for i{n} in T.unroll(1):" for n in range(40)]
    text = "\n".join(
        ["@T.prim_func", 'def main(A: T.Buffer((1,), "float32")):', *heads, " " * 44 + "A[0] = 1.0"]
    )
    assert not any(isinstance(n, For) for n in walk_stmts(lower(parse(text), level(3))))


def test_a_huge_unrolled_loop_stays_a_loop() -> None:
    rows = 4096
    text = ROWS.replace("6", str(rows)).format(tiles=1, rows=rows, scale=COSTLY.format(rows=rows))
    loops = [n for n in walk_stmts(lower(parse(text), level(3))) if isinstance(n, For)]
    assert any(loop.extent == IntImm(rows) for loop in loops)
