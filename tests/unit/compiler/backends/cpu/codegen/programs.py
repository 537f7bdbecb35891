"""Programs for the tests of code generation, and what is needed to run them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import te
from compiler.backends.cpu.codegen.machine_code import verify_module
from compiler.driver import build, emit
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.nodes import (
    BlockRealize,
    For,
    LoopKind,
    Stmt,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import transform
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.target.target import Target

ONE_CORE = "cpu -num-cores=1"


def mark(func: PrimFunc, **kinds: LoopKind) -> PrimFunc:
    """Return the program with the loops of these names of these kinds."""

    def kind(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, For) and stmt.var.name in kinds:
            return replace(stmt, kind=kinds[stmt.var.name])
        return None

    body = transform(func.body, on_stmt=kind)
    assert isinstance(body, BlockRealize)
    assert body is not func.body, f"no loop is called {', '.join(kinds)}"
    return replace(func, body=body)


def run(func: PrimFunc, *inputs: NDArray[Any], target: str = ONE_CORE) -> NDArray[Any]:
    """Run a program whose last parameter is its output; elements it leaves unwritten show."""
    verify_module(emit(func, Target(target)).text)
    module = build(func, target)
    last = module.params[-1]
    poison = 77 if np.dtype(last.dtype).kind in "biu" else np.nan
    output = np.full(last.shape, poison, dtype=last.dtype)
    try:
        module(*inputs, output)
    finally:
        module.close()
    return output


def elementwise(extent: int, body: Any, dtype: DType = "float32") -> PrimFunc:
    """Return `B[i] = body(A, i)` over a vector."""
    A = te.placeholder((extent,), dtype, name="A")
    B = te.compute((extent,), lambda i: body(A, i), name="B")
    return te.create_prim_func([A, B])


def check_against_evaluation(func: PrimFunc, *, seed: int = 0, rtol: float = 1e-5) -> None:
    """Build a program, and compare all it leaves in its parameters with its plain meaning."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, NDArray[Any]] = {}
    for buffer in func.buffers:
        shape = static_shape(buffer)
        numbers: NDArray[Any] = rng.standard_normal(shape)
        if not is_float(buffer.dtype):
            numbers = rng.integers(0, 2 if buffer.dtype == "bool" else 7, shape)
        inputs[buffer.name] = numbers.astype(buffer.dtype)
    expected = evaluate(func, inputs)
    verify_module(emit(func, Target(ONE_CORE)).text)
    module = build(func, ONE_CORE)
    module(*(inputs[buffer.name] for buffer in func.buffers))
    module.close()
    for name, array in expected.items():
        np.testing.assert_allclose(
            inputs[name].astype(np.float64), array.astype(np.float64), rtol=rtol, atol=rtol
        )
