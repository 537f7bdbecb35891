"""Symbolic programs are verified for all values in the ranges of their variables."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.symbols import with_ranges
from compiler.ir.verify.verify import verify, verify_all_sizes
from compiler.ir.verify.verify_error import VerifyError
from compiler.script import parse

HEAD = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, {shape}, "float32")
    for i, j in T.grid({loops}):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{to}] = A[{of}]
"""


def text(shape: str, loops: str, to: str, of: str) -> str:
    return HEAD.format(shape=shape, loops=loops, to=to, of=of)


@pytest.mark.parametrize(
    ("shape", "loops", "to", "of"),
    [
        ("(n, m)", "n, m", "vi, vj", "vi, vj"),
        ("(m, n)", "m, n", "vi, vj", "vj, vi"),
        ("(n, m)", "n, m", "vi, m - 1 - vj", "n - 1 - vi, vj"),
        ("(n + 2, m)", "n, m", "vi + 2, vj", "n - 1 - vi, vj"),
        ("(n // 2 + 1, m)", "n // 2 + 1, m", "vi, vj", "vi // 2, vj"),
        ("(n, 8)", "n, 8", "vi, vj", "vi, vj % 4 * 0"),
    ],
)
def test_what_is_in_bounds_for_all_sizes_is_accepted(
    shape: str, loops: str, to: str, of: str
) -> None:
    verify_all_sizes(parse(text(shape, loops, to, of)))


@pytest.mark.parametrize(
    ("shape", "loops", "to", "of", "access"),
    [
        ("(n, m)", "n, m", "vi, vj", "vj, vi", "A[vj, vi]"),
        ("(n, m)", "n, m", "vi, vj", "vi + 1, vj", "A[vi + 1, vj]"),
        ("(n - 0, m)", "n, m", "vi, vj", "vi, vj - 1", "A[vi, vj - 1]"),
        ("(n, 8)", "n, 8", "vi, vj", "vi, vj", "A[vi, vj]"),
    ],
)
def test_what_is_out_of_bounds_for_some_size_is_refused(
    shape: str, loops: str, to: str, of: str, access: str
) -> None:
    func = parse(text(shape, loops, to, of))  # sizes may be given that admit it
    with pytest.raises(VerifyError, match="can't prove that") as refused:
        verify_all_sizes(func)
    assert access in refused.value.message
    assert refused.value.code == "bounds"


def test_a_range_may_admit_an_access() -> None:
    func = parse(text("(n, 8)", "n, 8", "vi, vj", "vi, vj"))
    verify_all_sizes(with_ranges(func, {"m": (8, 64)}))
    with pytest.raises(VerifyError, match="the dimension from 0 to m - 1"):
        verify_all_sizes(with_ranges(func, {"m": (7, 64)}))


def test_an_extent_that_may_be_zero_is_refused() -> None:
    func = parse(text("(n - 1, m)", "n - 1, m", "vi, vj", "vi, vj"))
    with pytest.raises(VerifyError, match=r"n - 1, runs from 0 to .*: expected 1 or more"):
        verify_all_sizes(func)
    verify_all_sizes(with_ranges(func, {"n": (2, 64)}))


def test_arithmetic_that_may_overflow_is_refused_and_says_how_to_declare_a_range() -> None:
    func = parse(text("(n * m, 1)", "n * m, 1", "vi, vj", "0, 0").replace("n, m = T.", "m, n = T."))
    with pytest.raises(VerifyError, match=r"does not fit into int32: declare a smaller range"):
        verify_all_sizes(func)
    verify_all_sizes(with_ranges(func, {"n": 4096, "m": 4096}))


@pytest.mark.parametrize(("to", "races"), [("vi, 0", True), ("vi, vj", False)])
def test_a_race_at_some_size_is_refused(to: str, races: bool) -> None:
    program = text("(n, m)", "n, m", to, "vi, vj").replace(
        "    for i, j in T.grid(n, m):\n        with",
        "    for i in range(n):\n      for j in T.parallel(m):\n        with",
    )
    func = parse(program)
    verify(func)
    if races:
        with pytest.raises(VerifyError, match="race"):
            verify_all_sizes(func)
    else:
        verify_all_sizes(func)
