"""The measured ceiling of cores: how many fused multiply-adds they do."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.runtime.load import load_object
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target

_CHAINS = 12
_ROUNDS = 20_000
_ENTRY = "lw_peak"
_SHORT_SECS = 0.05


def fma_peak_gflops(target: Target | None = None, secs: float = 0.2) -> float:
    """Measure the rate of independent float32 multiply-adds in registers, in GFLOP/s.

    The best of many short runs by wall time, for about `secs` seconds: what no
    kernel on this core can pass. A multiply-add counts as two operations, and is
    two instructions on a CPU that does not fuse them.
    """
    goal = CpuTarget.of(target or Target("cpu"))
    lanes = goal.vector_bits // 32
    engine = load_object(compile_object(kernel(goal), goal), goal.triple)
    try:
        run = ctypes.CFUNCTYPE(ctypes.c_float)(engine.get_function_address(_ENTRY))
        best = float("inf")
        end = time.perf_counter() + secs
        while time.perf_counter() < end:
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
    finally:
        engine.close()
    return 2 * lanes * _CHAINS * _ROUNDS / best / 1e9


def peak_of_cores(target: CpuTarget, num_cores: int) -> float:
    """Return the FLOP/s of float32 of so many cores at once."""
    with ThreadPoolExecutor(num_cores) as pool:
        rates = pool.map(lambda _: fma_peak_gflops(target, _SHORT_SECS), range(num_cores))
        return 1e9 * sum(rates)


def kernel(target: CpuTarget) -> str:
    """Return a loop of independent chains `a = a * x + y`, long enough to hide the latency."""
    lanes = target.vector_bits // 32
    kind = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    x, y = "splat (float 0x3FEFFFFF00000000)", "splat (float 0x3E80000000000000)"
    phis, steps = [], []
    for chain in range(_CHAINS):
        start = f"splat (float {float(chain + 1):e})"
        phis.append(f"  %a{chain} = phi {kind} [ {start}, %entry ], [ %b{chain}, %loop ]")
        if target.has_fma:
            given = f"{kind} %a{chain}, {kind} {x}, {kind} {y}"
            steps.append(f"  %b{chain} = call {kind} {fma}({given})")
        else:
            steps.append(f"  %p{chain} = fmul {kind} %a{chain}, {x}")
            steps.append(f"  %b{chain} = fadd {kind} %p{chain}, {y}")
    sums = [f"  %s0 = fadd {kind} %b0, %b0"]
    sums += [f"  %s{n} = fadd {kind} %s{n - 1}, %b{n}" for n in range(1, _CHAINS)]
    return "\n".join(
        [
            f"declare {kind} {fma}({kind}, {kind}, {kind})",
            f"define float @{_ENTRY}() #0 {{",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *phis,
            *steps,
            "  %next = add i64 %i, 1",
            f"  %more = icmp ult i64 %next, {_ROUNDS}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *sums,
            f"  %sum = extractelement {kind} %s{_CHAINS - 1}, i64 0",
            "  ret float %sum",
            "}",
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bits}"'
            f' "min-legal-vector-width"="{target.vector_bits}" }}',
        ]
    )
