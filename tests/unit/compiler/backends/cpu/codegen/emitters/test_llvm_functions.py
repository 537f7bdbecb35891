"""Each function of LLVM that programs may call: its machine code, and what it computes.

LLVM ends the process at a function that it does not know, and at types that a function lacks: each
function is compiled for a CPU that has it, and for each type that it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.driver import build, emit
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.llvm_calls import LLVM_FUNCTIONS, is_offered, llvm_result, spelled
from compiler.ir.core.llvm_functions import LlvmFunction, VectorType
from compiler.ir.core.llvm_generic import GENERIC_FUNCTIONS
from compiler.ir.core.llvm_of_cpus import FUNCTIONS_OF_CPUS
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget
from tests.targets import runs_here

V3 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")
# Together they have every instruction that is listed.
CPUS = [V3, *(CpuTarget(f"cpu -mcpu={name}") for name in ("graniterapids", "arrowlake", "ampere1"))]
DTYPES: tuple[DType, ...] = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)


def calls(function: LlvmFunction, operands: list[list[VectorType]]) -> PrimFunc:
    """Return a program that calls a function on operands of its own, by each list of types."""
    params, lines = [], []
    for number, types in enumerate(operands):
        result = llvm_result(function.name, types)
        names = [f"A{number}_{place}" for place in range(len(types))]
        params += [
            f'{name}: T.Buffer(({lanes},), "{dtype}")'
            for name, (dtype, lanes) in zip(names, types, strict=True)
        ]
        params.append(f'B{number}: T.Buffer(({result[1]},), "{result[0]}")')
        values = [
            f"{name}[0]" if lanes == 1 else f"{name}[T.Ramp(0, 1, {lanes})]"
            for name, (_, lanes) in zip(names, types, strict=True)
        ]
        place = "0" if result[1] == 1 else f"0:{result[1]}"
        lines.append(
            f'    B{number}[{place}] = T.call_llvm_pure_intrin("{spelled(*result)}", '
            f'"{function.name}", {", ".join(values)})'
        )
    return parse("\n".join(["@T.prim_func", f"def main({', '.join(params)}):", *lines]))


def overloads(function: LlvmFunction, *lanes: int) -> list[list[VectorType]]:
    """Return the types of operands that an overloaded function takes, in vectors of some sizes."""
    return [
        [(dtype, 1 if function.has_start and place == 0 else size) for place in range(arity)]
        for arity in [function.arity]
        for dtype in DTYPES
        if function.takes(dtype)
        for size in lanes
    ]


def test_each_function_is_listed_once() -> None:
    assert len(LLVM_FUNCTIONS) == len(GENERIC_FUNCTIONS) + len(FUNCTIONS_OF_CPUS)


@pytest.mark.parametrize("target", [V3, CPUS[-1]], ids=lambda target: target.cpu)
def test_functions_of_every_cpu_have_machine_code_for_each_type(target: CpuTarget) -> None:
    for function in GENERIC_FUNCTIONS:
        sizes = (2, 5) if function.is_reduction else (1, 5)
        assert compile_object(
            emit(calls(function, overloads(function, *sizes)), target).text, target
        )


@pytest.mark.parametrize("function", FUNCTIONS_OF_CPUS, ids=lambda function: function.name)
def test_an_instruction_has_machine_code_for_a_cpu_that_offers_it(function: LlvmFunction) -> None:
    assert function.args is not None
    target = next(cpu for cpu in CPUS if is_offered(function, cpu.features))
    assert compile_object(emit(calls(function, [list(function.args)]), target).text, target)


def operand(buffer: Buffer, rng: np.random.Generator) -> NDArray[Any]:
    """Return numbers over the whole range of a type, with those at its ends."""
    shape = static_shape(buffer)
    if is_float(buffer.dtype):
        special = [0.0, -0.0, 0.5, -1.5, 2.5, np.inf, -np.inf, np.nan]
        numbers = np.where(
            rng.random(shape) < 0.4, rng.choice(special, shape), rng.normal(size=shape)
        )
        return numbers.astype(buffer.dtype)
    limits = np.iinfo(buffer.dtype)
    ends = np.array([0, 1, limits.max, limits.min, limits.min + 1], buffer.dtype)
    numbers = rng.integers(limits.min, limits.max, shape, buffer.dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.4, rng.choice(ends, shape), numbers)


def check(func: PrimFunc) -> None:
    """Run a program on numbers of its own choice, and compare it with its evaluation."""
    rng = np.random.default_rng(len(func.buffers))
    inputs = {buffer.name: operand(buffer, rng) for buffer in func.buffers}
    with np.errstate(all="ignore"):
        expected = evaluate(func, inputs)
    module = build(func, V3)
    module(*inputs.values())
    module.close()
    for name, array in expected.items():
        if array.dtype.kind == "f":
            # A sum in another order, or a product that is not rounded, differs in the last bits.
            tolerance = 64 * np.finfo(array.dtype).eps
            np.testing.assert_allclose(inputs[name], array, tolerance, tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(inputs[name], array, err_msg=name)


@runs_here(3)
@pytest.mark.parametrize("function", GENERIC_FUNCTIONS, ids=lambda function: function.name)
def test_a_function_computes_what_its_reference_does(function: LlvmFunction) -> None:
    check(calls(function, overloads(function, 3, 16)))


@runs_here(3)
@pytest.mark.parametrize(
    "function",
    [function for function in FUNCTIONS_OF_CPUS if is_offered(function, V3.features)],
    ids=lambda function: function.name,
)
def test_an_instruction_computes_what_its_reference_does(function: LlvmFunction) -> None:
    assert function.args is not None
    check(calls(function, [list(function.args)] * 4))
