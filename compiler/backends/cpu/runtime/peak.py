"""The measured peak rate of cores: their fused multiply-adds a second."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.executor.loaded_code import LoadedCode
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target

# Independent chains hide the latency of an FMA: 4 or 5 cycles, with two FMAs a cycle on CPUs since
# Haswell need 8 or 10 chains, with four on some AArch64 cores 16. 12 leave 4 of 16 registers for
# the constants, 24 leave 8 of 32.
_CHAINS = {16: 12, 32: 24}
# A chosen bound: 20,000 turns take tens of microseconds, far more than the clock's resolution.
_ROUNDS = 20_000
# Sums and products of them stay normal numbers.
_FACTORS = (0.99999, 0.25)
_ENTRY = "lw_peak"
# A chosen bound: each core gets several hundred calls, and all cores measure at the same time.
_SHORT_SECS = 0.05


def fma_peak_gflops(
    target: Target | None = None, secs: float = 0.2, *, chains: int | None = None
) -> float:
    """Measure the rate of independent float32 multiply-adds in registers, in GFLOP/s.

    The result is the best of many short runs by wall time, a limit that no kernel on this core
    exceeds. A multiply-add counts as two operations, and is two instructions on a CPU without FMA.

    Args:
        target: The CPU, the host's by default.
        secs: About how long to measure, in seconds.
        chains: How many multiply-adds are independent: by default enough for any core. One shows
            the latency.
    """
    goal = CpuTarget.of(target or Target("cpu"))
    lanes = goal.vector_bits // 32
    chains = chains or num_chains(goal)
    code = LoadedCode(compile_object(kernel(goal, chains), goal))
    entry = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_float)
    run = entry(code.address(_ENTRY))
    best = float("inf")
    end = time.perf_counter() + secs
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(*_FACTORS)
        best = min(best, time.perf_counter() - start)
    return 2 * lanes * chains * _ROUNDS / best / 1e9


def peak_of_cores(target: CpuTarget, num_cores: int) -> float:
    """Measure the float32 rate of several cores at once, in FLOP/s."""
    with ThreadPoolExecutor(num_cores) as pool:
        rates = pool.map(lambda _: fma_peak_gflops(target, _SHORT_SECS), range(num_cores))
        return 1e9 * sum(rates)


def num_chains(target: CpuTarget) -> int:
    """Return how many independent chains the registers of a CPU hold."""
    return _CHAINS[target.num_vector_registers]


def kernel(target: CpuTarget, chains: int) -> str:
    """Return the LLVM IR of a loop of independent chains `a = a + x * y`, as in products.

    Without fused multiply-adds, they are `a = a * x + y`: LLVM would compute `x * y` once.
    """
    lanes = target.vector_bits // 32
    kind = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    copies = []
    for name in "xy":
        first = f"insertelement {kind} poison, float %{name}, i64 0"
        zeros = f"<{lanes} x i32> zeroinitializer"
        copies += [
            f"  %{name}.first = {first}",
            f"  %{name}s = shufflevector {kind} %{name}.first, {kind} poison, {zeros}",
        ]
    phis, steps = [], []
    for chain in range(chains):
        start = f"splat (float {float(chain + 1):e})"
        phis.append(f"  %a{chain} = phi {kind} [ {start}, %entry ], [ %b{chain}, %loop ]")
        if target.has_fma:
            operands = f"{kind} %xs, {kind} %ys, {kind} %a{chain}"
            steps.append(f"  %b{chain} = call {kind} {fma}({operands})")
        else:
            steps.append(f"  %p{chain} = fmul {kind} %a{chain}, %xs")
            steps.append(f"  %b{chain} = fadd {kind} %p{chain}, %ys")
    sums = [f"  %s0 = fadd {kind} %b0, %b0"]
    sums += [f"  %s{n} = fadd {kind} %s{n - 1}, %b{n}" for n in range(1, chains)]
    return "\n".join(
        [
            f"declare {kind} {fma}({kind}, {kind}, {kind})",
            f"define float @{_ENTRY}(float %x, float %y) #0 {{",
            "entry:",
            *copies,
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
            f"  %sum = extractelement {kind} %s{chains - 1}, i64 0",
            "  ret float %sum",
            "}",
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bits}"'
            f' "min-legal-vector-width"="{target.vector_bits}" }}',
        ]
    )
