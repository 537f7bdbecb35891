from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.backends.kernel_set import KernelSet
from compiler.backends.module import Module
from compiler.driver import build, compile_kernel
from compiler.executor.error import ArgumentError, ArtifactError
from compiler.executor.kernel import load_kernel
from compiler.executor.kernel_file import load_kernels
from compiler.executor.machine import architecture
from compiler.ir.core.program import IRModule
from compiler.ops import matmul, relu
from compiler.schedule.schedule import Schedule
from compiler.script import parse_module


def test_the_module_of_a_schedule_is_built() -> None:
    kernel = build(Schedule(matmul(4, 4, 4)).mod)
    out = np.empty((4, 4), "float32")
    kernel(np.eye(4, dtype="float32"), np.full((4, 4), 2, "float32"), out)
    np.testing.assert_array_equal(out, np.full((4, 4), 2))


def test_a_module_of_several_functions_is_no_kernel() -> None:
    func = matmul(4, 4, 4)
    module = IRModule((func, func.with_attr("global_symbol", "other")))
    with pytest.raises(BuildError, match="the module holds matmul, other"):
        compile_kernel(module)


TWO = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), s: T.float32):
        for i in range(8):
            B[i] = A[i] * s

    @T.prim_func
    def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Module.scale(A, B, T.float32(2))

    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Y = T.alloc_buffer((8,))
        Module.scale(A, Y, T.float32(3))
        Module.scale(Y, B, T.float32(5))
"""


def _ran(kernel: Module | KernelSet) -> float:
    out = np.empty(8, "float32")
    kernel(np.ones(8, "float32"), out)
    return float(out[0])


def test_each_entry_of_a_module_is_a_kernel_and_main_is_called() -> None:
    kernels = build(parse_module(TWO))
    assert isinstance(kernels, KernelSet)
    assert list(kernels) == ["double", "main"]
    assert len(kernels) == 2
    assert (_ran(kernels["double"]), _ran(kernels["main"]), _ran(kernels)) == (2, 15, 15)
    assert repr(kernels) == "<KernelSet of double, main>"
    assert len(kernels.time_evaluator("double", number=1)(*np.ones((2, 8), "float32")).results) == 1
    with pytest.raises(KeyError, match=r"no function .scale. .* one of double, main"):
        kernels["scale"]
    kernels.close()


def test_the_kernels_of_a_module_are_one_file(tmp_path: Path) -> None:
    kernels, path = build(parse_module(TWO)), tmp_path / "kernels.lwk"
    kernels.save(path)
    loaded = load_kernels(path)
    assert list(loaded) == ["double", "main"]
    outs = np.empty((2, 8), "float32")
    for kernel, out in zip(loaded.values(), outs, strict=True):
        kernel(np.ones(8, "float32"), out)
    assert outs[:, 0].tolist() == [2, 15]
    with pytest.raises(ArtifactError, match="holds several kernels: use load_kernels"):
        load_kernel(path)
    with pytest.raises(ArgumentError, match="no kernel is called scale: expected double, main"):
        load_kernels(path, {"scale": {}})


def test_a_module_of_one_entry_is_a_kernel() -> None:
    kernel = build(parse_module(TWO[: TWO.index("    @T.prim_func\n    def main")]))
    assert isinstance(kernel, Module)
    assert _ran(kernel) == 2
    assert kernel["double"] is kernel


def test_a_set_without_main_is_not_called() -> None:
    kernels = build(parse_module(TWO.replace("def main", "def fifteen")))
    with pytest.raises(KeyError, match=r"no function .main. .* one of double, fifteen"):
        _ran(kernels)


def test_each_kernel_of_a_module_has_constants_of_its_own() -> None:
    ones = np.ones(8, "float32")
    kernels = build(parse_module(TWO), const_params={"double": {"A": ones * 7}})
    assert isinstance(kernels, KernelSet)
    out = np.empty(8, "float32")
    kernels["double"](out)
    np.testing.assert_array_equal(out, ones * 14)
    assert _ran(kernels["main"]) == 15
    for wrong in ({"A": ones}, {"double": ones}):
        with pytest.raises(BuildError, match=r"maps their names \(double, main\) to constants"):
            build(parse_module(TWO), const_params=wrong)


def test_a_module_that_is_not_legal_is_not_built() -> None:
    module = parse_module(TWO)
    without = IRModule(tuple(func for func in module.functions if func.name != "scale"))
    with pytest.raises(BuildError, match="double calls scale, but its module has no such"):
        build(without)
    with pytest.raises(BuildError, match="double calls scale, a function of a module"):
        build(module["double"])
    with pytest.raises(BuildError, match="the module has no function"):
        build(IRModule(()))


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a PrimFunc or a Schedule, not a str"):
        compile_kernel("matmul:4,4,4")  # type: ignore[arg-type]


def test_a_kernel_for_another_machine_is_compiled_and_not_loaded() -> None:
    target = f"cpu -mcpu={'x86-64' if architecture() == 'aarch64' else 'cortex-a72'} -num-cores=1"
    with pytest.raises(
        ArtifactError, match=r"was built for .*this host is .*; compile_kernel comp"
    ):
        build(relu(4), target)
    assert compile_kernel(relu(4), target).code
