"""Operations of a point, counted by hand."""

from __future__ import annotations

import pytest

from compiler.script import parse
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.operations import Operations

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "{out}")):
    for i in range(8):
        with T.sblock("C"):
            v = T.axis.spatial(8, i)
            C[v] = {value}
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A[v] + B[v]", Operations(add=1)),
        ("A[v] * B[v] + B[v]", Operations(fma=1)),
        ("A[v] * B[v] - B[v] * B[v]", Operations(fma=1, mul=1)),
        ("A[v] / B[v]", Operations(div=1)),
        ("T.exp(A[v]) * B[v]", Operations(special=1, mul=1)),
        ("T.max(A[v], B[v])", Operations(compare=1)),
        ("T.Select(A[v] < B[v], A[v], B[v])", Operations(compare=2)),
        ("T.Cast('float32', v)", Operations(convert=1)),
        ("A[v * 2 % 8]", Operations()),  # arithmetic on indices does not count
    ],
)
def test_operations_are_counted_by_kind(value: str, expected: Operations) -> None:
    (site,) = sites(parse(PROGRAM.format(value=value, out="float32")))
    facts = block_facts(site)
    assert facts is not None
    assert facts.operations == expected
    assert facts.operations.total == sum(vars(expected).values())


def test_arithmetic_on_integers_is_its_own_kind() -> None:
    (site,) = sites(parse(PROGRAM.format(value="v * 3 + 1", out="int32")))
    facts = block_facts(site)
    assert facts is not None
    assert facts.operations == Operations(integer=2)
