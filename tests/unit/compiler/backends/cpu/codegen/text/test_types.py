"""LLVM's text of types, literals and conversions; LLVM itself reads each back."""

from __future__ import annotations

import struct
from typing import get_args

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.backends.cpu.codegen.text.types import (
    conversion,
    element_alignment,
    literal,
    memory_type,
    scalar_type,
    splat,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.nodes import FloatImm, IntImm

DTYPES: tuple[DType, ...] = get_args(DType)
FLOATS = [dtype for dtype in DTYPES if is_float(dtype)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_llvm_reads_types_and_literals(dtype: DType) -> None:
    one = literal(FloatImm(1.0, dtype) if is_float(dtype) else IntImm(1, dtype))
    scalar = scalar_type(dtype)
    llvm.parse_assembly(
        f"define {vector(scalar, 4)} @f(ptr %p) {{\n"
        f"  %a = load {memory_type(dtype)}, ptr %p, align {element_alignment(dtype)}\n"
        f"  ret {vector(scalar, 4)} {splat(scalar, one, 4)}\n}}"
    ).verify()


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_llvm_reads_conversions(source: DType, target: DType) -> None:
    instruction = conversion(source, target)
    if instruction is None:
        assert scalar_type(source) == scalar_type(target)
        return
    types = f"{scalar_type(source)} %x to {scalar_type(target)}"
    llvm.parse_assembly(
        f"define {scalar_type(target)} @f({scalar_type(source)} %x) {{\n"
        f"  %y = {instruction} {types}\n  ret {scalar_type(target)} %y\n}}"
    ).verify()


@given(st.floats(allow_nan=False), st.sampled_from(FLOATS))
def test_a_literal_is_the_value_rounded_once(value: float, dtype: DType) -> None:
    written = struct.unpack(">d", int(literal(FloatImm(value, dtype)), 16).to_bytes(8, "big"))[0]
    if dtype == "bfloat16":
        with np.errstate(over="ignore"):
            expected = float(np.float32(value).astype(ml_dtypes.bfloat16))
    else:
        with np.errstate(over="ignore"):
            expected = float(np.array(value).astype(dtype))
    np.testing.assert_equal(written, expected)


def test_suffixes_of_overloaded_functions() -> None:
    assert type_suffix("float", 8) == "v8f32"
    assert type_suffix("double", 1) == "f64"
    assert type_suffix("i32", 4) == "v4i32"


def test_one_lane_is_a_scalar() -> None:
    assert vector("float", 1) == "float"
    assert splat("float", "0.0", 1) == "0.0"
