"""Formulas of extents: arithmetic on integers, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.executor.extents import formula, value_of, variables_of


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_formula_is_what_python_computes(n: int, m: int) -> None:
    values = {"n": n, "m": m}
    assert value_of("(n + 7) // 8 * 64 - m % 3", values) == (n + 7) // 8 * 64 - m % 3
    assert value_of("max(n * m, -5 + min(n, 2))", values) == max(n * m, -5 + min(n, 2))
    assert value_of(12, values) == 12


def test_the_variables_of_a_formula() -> None:
    assert variables_of("max(n, 4) * m + n") == {"n", "m"}
    assert not variables_of(4)


@pytest.mark.parametrize(
    "text",
    [
        *("n.bit_length()", "__import__('os')", "n ** 9", "n if m else 1", "[n]", "f(n, 1)"),
        *("1.5", "True", "'n'", "n +", "", "n / 2", "max(n)", "min(n, m, n)", "(" * 999),
        "n + " * 2000 + "n",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        formula(text)
