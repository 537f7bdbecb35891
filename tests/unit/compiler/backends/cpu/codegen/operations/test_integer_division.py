"""Integer division and shifts for every operand, against Python's integers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from compiler.ir.core.dtypes import DType, bits, is_signed, smallest_and_largest, wrapped
from compiler.ir.core.nodes import (
    TRUE,
    ArithOp,
    BinOp,
    Block,
    BlockRealize,
    For,
    IntImm,
    Load,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from tests.unit.compiler.backends.cpu.codegen.programs import run


def calculating(op: ArithOp, size: int, dtype: DType) -> PrimFunc:
    a, b, c = (make_buffer(name, (size,), dtype) for name in "ABC")
    i = Var("i")
    value = BinOp(op, Load(a, (i,)), Load(b, (i,)))
    loop = For(i, IntImm(size), Store(c, (i,), value), "vectorized")
    return PrimFunc("main", (a, b, c), BlockRealize((), TRUE, Block("root", (), (), (), loop)))


def expected(op: ArithOp, a: int, b: int, dtype: DType) -> int:
    if op in ("//", "%"):
        return 0 if b == 0 else wrapped(a // b if op == "//" else a % b, dtype)
    # A count is read as unsigned: by the width or more, only copies of the sign remain.
    count = b % 2 ** bits(dtype)
    return wrapped(a << min(count, 64) if op == "<<" else a >> min(count, 64), dtype)


@pytest.mark.parametrize("op", ["//", "%", "<<", ">>"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_every_operand_has_a_result(op: Any, dtype: DType) -> None:
    low, high = map(int, smallest_and_largest(dtype))
    rng = np.random.default_rng(0)
    drawn = [int(v) for v in rng.integers(max(low, -100), min(high, 100), 8)]
    values = sorted({low, high, low + 1, 0, 1, 7, 31, bits(dtype), *drawn})
    values += [-1, -7] if is_signed(dtype) else []
    pairs = list(itertools.product(values, values))
    a, b = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    got = run(calculating(op, len(pairs), dtype), a, b)
    assert got.tolist() == [expected(op, x, y, dtype) for x, y in pairs]
