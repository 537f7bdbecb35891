"""The emulator runs the PTX of LLVM too."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np

from compiler.backends.emulator.emulate import emulate

# Each thread adds the squares of all elements of its block, in an order of its own.
IR = """
target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [64 x float] undef, align 16
define ptx_kernel void @squares(ptr addrspace(1) %a, ptr addrspace(1) %b, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, 64
  %i = add i32 %first, %t
  %source = getelementptr float, ptr addrspace(1) %a, i32 %i
  %value = load float, ptr addrspace(1) %source, align 4
  %mine = getelementptr [64 x float], ptr addrspace(3) @tile, i32 0, i32 %t
  store float %value, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %loop
loop:
  %k = phi i32 [0, %entry], [%next, %loop]
  %sum = phi float [0.0, %entry], [%total, %loop]
  %j = xor i32 %t, %k
  %other = getelementptr [64 x float], ptr addrspace(3) @tile, i32 0, i32 %j
  %x = load float, ptr addrspace(3) %other, align 4
  %total = call float @llvm.fma.f32(float %x, float %x, float %sum)
  %next = add i32 %k, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  %target = getelementptr float, ptr addrspace(1) %b, i32 %i
  store float %total, ptr addrspace(1) %target, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare float @llvm.fma.f32(float, float, float)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"""


def test_a_kernel_of_llvm_runs() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu="sm_90a", features="+ptx86", opt=3)
    ptx = machine.emit_assembly(llvm.parse_assembly(IR))
    a = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    b = np.zeros_like(a)
    report = emulate(ptx, None, (2, 1, 1), (64, 1, 1), [a, b, 64])
    assert not report.faults, report
    expected = (a.reshape(2, 64).astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(b.reshape(2, 64), np.repeat(expected[:, None], 64, 1), rtol=1e-6)
