"""Tile registers of AMX as NumPy arrays: generated code runs on any host, with calls for them.

The instructions are those of Intel's "Architecture Instruction Set Extensions Programming
Reference" (319433). Subnormal numbers are not modelled.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.driver import emit
from compiler.executor import loaded_code
from compiler.executor.extents import fixed
from compiler.executor.loaded_code import external_address
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget

Array = NDArray[Any]
SIZES = {
    "ldtilecfg": "p",
    "tilezero": "r",
    "tileloadd64": "rps",
    "tilestored64": "rps",
    "tilerelease": "",
}
_TYPES = {"r": ctypes.c_uint8, "p": ctypes.c_void_p, "s": ctypes.c_int64}


class TileModel:
    """Eight registers of 16 rows of 64 bytes, and the number of products of two of them."""

    def __init__(self) -> None:
        self.registers = np.zeros((8, 16, 64), np.uint8)
        self.is_configured = False
        self.num_products = 0

    def ldtilecfg(self, pointer: int) -> None:
        """Accept the one configuration that generated code has."""
        configuration = ctypes.string_at(pointer, 64)
        assert configuration[:16] == bytes([1]) + bytes(15)
        assert configuration[16:32] == bytes([64, 0]) * 8
        assert configuration[48:56] == bytes([16]) * 8
        assert not any(configuration[32:48] + configuration[56:])
        self.is_configured = True

    def tilerelease(self) -> None:
        """Forget everything."""
        self.registers[:] = 0xFF
        self.is_configured = False

    def tilezero(self, register: int) -> None:
        """Fill a register with zeros."""
        assert self.is_configured
        self.registers[register] = 0

    def tileloadd64(self, register: int, pointer: int, stride: int) -> None:
        """Load rows that are `stride` bytes apart."""
        assert self.is_configured
        for row in range(16):
            data = ctypes.string_at(pointer + row * stride, 64)
            self.registers[register, row] = np.frombuffer(data, np.uint8)

    def tilestored64(self, register: int, pointer: int, stride: int) -> None:
        """Store rows that are `stride` bytes apart."""
        assert self.is_configured
        for row in range(16):
            ctypes.memmove(pointer + row * stride, self.registers[register, row].tobytes(), 64)

    def product(self, types: tuple[Any, Any, Any], c: int, a: int, b: int) -> None:
        """Add to each element of C the products of groups: `C[m, n] += A[m, k, e] * B[k, n, e]`."""
        assert self.is_configured
        left, right = (
            self.registers[tile].view(dtype).reshape(16, 16, -1).astype(wide)
            for tile, dtype, wide in ((a, types[0], types[2]), (b, types[1], types[2]))
        )
        total = self.registers[c].view(types[2])
        with np.errstate(all="ignore"):  # rows that pad a panel hold anything
            for k in range(16):
                for e in range(left.shape[2]):
                    total += left[:, k, e, None] * right[None, k, :, e]
        self.num_products += 1


PRODUCTS = {
    "tdpbf16ps": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
    "tdpbssd": (np.int8, np.int8, np.int32),
    "tdpbsud": (np.int8, np.uint8, np.int32),
    "tdpbusd": (np.uint8, np.int8, np.int32),
    "tdpbuud": (np.uint8, np.uint8, np.int32),
}


def run_by_model(
    func: PrimFunc, inputs: Mapping[str, Array], cpu: str, host: CpuTarget
) -> tuple[dict[str, Array], int]:
    """Run the code of a CPU on this host; return the outputs and the number of products."""
    module = emit(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1"))
    text = re.sub(r"@llvm\.x86\.(t(?:ile|dp)\w+|ldtilecfg)", r"@tile_model_\1", module.text)
    text = text.replace(" immarg", "")
    text = re.sub(r'"target-features"="[^"]*"', f'"target-features"="{host.features}"', text)
    text = re.sub(r'"(tune-|target-)cpu"="[^"]*"', rf'"\1cpu"="{host.instruction_set}"', text)
    text = re.sub(r'(?<=target triple = ")[^"]*', host.triple, text)
    model = TileModel()
    functions = _exported(model)
    with mock.patch.object(loaded_code, "external_address", partial(_address, functions)):
        code = loaded_code.LoadedCode(compile_object(text, host))
    arrays = {
        b.name: np.array(inputs[b.name]) if b.name in inputs else _empty(b.dtype, static_shape(b))
        for b in func.buffers
    }
    workspace = np.zeros(fixed(module.workspace_bytes) + 64, np.uint8)
    first = -workspace.ctypes.data % 64
    addresses = [a.ctypes.data for a in arrays.values()]
    packed = (ctypes.c_uint64 * (len(addresses) + 3))(
        *addresses, workspace.ctypes.data + first, 1, 0
    )
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("lw_kernel"))(ctypes.addressof(packed))
    assert functions  # alive until here
    outputs = {name: array for name, array in arrays.items() if name not in inputs}
    return outputs, model.num_products


def _empty(dtype: str, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _exported(model: TileModel) -> dict[str, Any]:
    """Return the instructions by name; they can be called as long as the result lives."""
    functions: dict[str, Any] = {}

    def export(name: str, sizes: str, function: Callable[..., None]) -> None:
        kind = ctypes.CFUNCTYPE(None, *(_TYPES[s] for s in sizes))
        functions[f"tile_model_{name}"] = kind(function)

    for name, sizes in SIZES.items():
        export(name, sizes, getattr(model, name))
    for name, types in PRODUCTS.items():
        export(name, "rrr", lambda c, a, b, types=types: model.product(types, c, a, b))
    return functions


def _address(functions: Mapping[str, Any], name: str) -> int:
    if name in functions:
        return ctypes.cast(functions[name], ctypes.c_void_p).value or 0
    return external_address(name)
