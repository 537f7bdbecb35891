"""Kernels do not compute with what old memory holds: the CPU would report subnormal operands."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
import pytest

import loopwright as lw
from compiler.backends.module import Module
from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.schedule.error import ScheduleError
from tests.targets import level, runs_here
from tuner.search.make import make_strategy
from tuner.task import Task

pytestmark = runs_here(3)

DENORMAL_OPERAND = 2
"""The bit of MXCSR that an operation on a subnormal number sets (Intel, volume 1, 10.2.3)."""
OLD_MEMORY = 0x00007FFF_12345678
"""Like an address on Linux: its upper half is a subnormal float32."""
CONTROL = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i32 @read_status() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %status = load i32, ptr %place
  ret i32 %status
}

define void @write_status(i32 %status) {
  %place = alloca i32
  store i32 %status, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}

define void @fill_stack(i64 %word) {
entry:
  %words = alloca [65536 x i64]
  br label %loop
loop:
  %n = phi i64 [0, %entry], [%next, %loop]
  %place = getelementptr i64, ptr %words, i64 %n
  store volatile i64 %word, ptr %place
  %next = add i64 %n, 1
  %again = icmp ult i64 %next, 65536
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""


@dataclass
class Control:
    """Functions of machine code: the status of vector arithmetic, and old memory on the stack."""

    engine: llvm.ExecutionEngine

    def call(self, name: str, *args: int, kind: type = ctypes.c_int64) -> int:
        result = None if name != "read_status" else ctypes.c_uint32
        function = ctypes.CFUNCTYPE(result, *[kind] * len(args))
        return int(function(self.engine.get_function_address(name))(*args) or 0)


@pytest.fixture(scope="module")
def control() -> Control:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(CONTROL), machine)
    engine.finalize_object()
    return Control(engine)


def sees_subnormal_operands(kernel: Module, arrays: list[np.ndarray], control: Control) -> bool:
    status = control.call("read_status")
    control.call("write_status", status & ~DENORMAL_OPERAND, kind=ctypes.c_uint32)
    control.call("fill_stack", OLD_MEMORY)
    kernel(*arrays)
    return bool(control.call("read_status") & DENORMAL_OPERAND)


def arrays_of(func: lw.PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(1, 2, static_shape(b)).astype(b.dtype) for b in func.buffers]


@pytest.mark.parametrize(
    "spec",
    [
        "dense:127,100,77",
        "matmul:77,24,512",
        "attention:1,2,37,37,16",
        "depthwise_conv2d:1,8,14,14,5,1,2",
        "conv2d:1,16,7,7,16,3,1,1",
        "softmax:13,37",
        "layer_norm:7,50",
    ],
)
def test_no_candidate_computes_with_old_memory(spec: str, control: Control) -> None:
    func = lw.ops.from_spec(spec)
    arrays = arrays_of(func)
    num_kernels = 0
    for proposal in make_strategy("random", Task(func, level(3)), seed=0).ask(12):
        # Memory that is given back and soon allocated again.
        old = [np.full(size, OLD_MEMORY) for size in (1 << 8, 1 << 12, 1 << 15)]
        del old
        try:
            kernel = build(proposal.candidate.trace.apply_to(func), level(3))
        except (ScheduleError, lw.BuildError):
            continue
        assert not sees_subnormal_operands(kernel, arrays, control), proposal.candidate.sketch
        kernel.close()
        num_kernels += 1
    assert num_kernels > 4


def test_a_subnormal_input_is_seen(control: Control) -> None:
    func = lw.ops.from_spec("matmul:16,16,16")
    arrays = arrays_of(func)
    arrays[0][3, 4] = np.float32(1e-42)
    assert sees_subnormal_operands(build(func, level(3)), arrays, control)
