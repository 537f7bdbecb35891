"""Parallel loops whose threads fetch iterations on demand.

A kernel passes the parts of a parallel loop to `lw_launch` of the process's pool of threads. Its
address is an argument of the kernel, so the object needs no linking. By default each thread runs
one part, and all parts have one size. If iterations differ in cost, the annotation
`dynamic_partition` makes the threads take that many iterations at a time from a shared counter.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.error import CodegenError
from compiler.ir.core.nodes import For

DYNAMIC = "dynamic_partition"
"""The annotation of a parallel loop: the iterations that a thread takes at a time."""

DYNAMIC_LAUNCH = "lw_share"

# An index is taken by one atomic addition, so each is taken once. The addition is relaxed
# (`monotonic`): the launch itself orders what tasks read and write.
_DYNAMIC_LAUNCH_RUNTIME = """
; function, context, extent, how many at a time; the counter, alone on its cache lines
%lw.share = type { ptr, ptr, i64, i64, [12 x i64], i64, [15 x i64] }

define internal void @lw_take(i64 %begin, i64 %end, i64 %number, ptr %share) nounwind {
entry:
  %fn.at = getelementptr %lw.share, ptr %share, i64 0, i32 0
  %context.at = getelementptr %lw.share, ptr %share, i64 0, i32 1
  %extent.at = getelementptr %lw.share, ptr %share, i64 0, i32 2
  %step.at = getelementptr %lw.share, ptr %share, i64 0, i32 3
  %counter = getelementptr %lw.share, ptr %share, i64 0, i32 5
  %fn = load ptr, ptr %fn.at
  %context = load ptr, ptr %context.at
  %extent = load i64, ptr %extent.at
  %step = load i64, ptr %step.at
  br label %take
take:
  %low = atomicrmw add ptr %counter, i64 %step monotonic, align 8
  %any = icmp ult i64 %low, %extent
  br i1 %any, label %run, label %done
run:
  %next = add i64 %low, %step
  %over = icmp ugt i64 %next, %extent
  %high = select i1 %over, i64 %extent, i64 %next
  call void %fn(i64 %low, i64 %high, i64 %number, ptr %context)
  br label %take
done:
  ret void
}

define internal void @lw_share(
    ptr %launch, ptr %fn, i64 %extent, ptr %context, i64 %threads, i64 %step) nounwind {
  %share = alloca %lw.share, align 128
  %fn.at = getelementptr %lw.share, ptr %share, i64 0, i32 0
  %context.at = getelementptr %lw.share, ptr %share, i64 0, i32 1
  %extent.at = getelementptr %lw.share, ptr %share, i64 0, i32 2
  %step.at = getelementptr %lw.share, ptr %share, i64 0, i32 3
  %counter = getelementptr %lw.share, ptr %share, i64 0, i32 5
  store ptr %fn, ptr %fn.at
  store ptr %context, ptr %context.at
  store i64 %extent, ptr %extent.at
  store i64 %step, ptr %step.at
  store i64 0, ptr %counter
  %rest = sub i64 %extent, 1
  %whole = udiv i64 %rest, %step
  %takes = add i64 %whole, 1
  call void %launch(ptr @lw_take, i64 %takes, ptr %share, i64 %threads)
  ret void
}
"""


def iterations_at_a_time(loop: For) -> int | None:
    """Return the number of iterations that a thread takes at a time; None for equal parts.

    Raises:
        CodegenError: If the annotation is not a positive number.
    """
    annotations = dict(loop.annotations)
    if DYNAMIC not in annotations:
        return None
    step = annotations[DYNAMIC]
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise CodegenError(
            f"loop {loop.var.name} has {DYNAMIC} {step!r}: expected the iterations that a thread"
            " takes at a time, 1 or more"
        )
    return step


def dynamic_launch_runtime() -> str:
    """Return the LLVM IR of the functions that distribute iterations on demand."""
    return _DYNAMIC_LAUNCH_RUNTIME
