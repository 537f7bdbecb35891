"""The page on models lists the operators that have conversions."""

from __future__ import annotations

from tests.unit.compiler.graph.read_onnx.operator_table import PAGE, table


def test_the_page_lists_all_operators_that_have_conversions() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(table()), (
        "run python -m tests.unit.compiler.graph.read_onnx.operator_table"
    )
