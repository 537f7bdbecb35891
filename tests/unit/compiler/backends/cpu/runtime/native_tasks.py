"""Tasks in native code, to be run on the pool of threads as a kernel's are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.dynamic_partition import dynamic_launch_runtime
from compiler.backends.cpu.runtime.pool import launch_address
from compiler.executor.loaded_code import LoadedCode
from compiler.target.cpu import CpuTarget

Counts = NDArray[np.int64]

# What a task finds: the address of one counter an iteration, and of a number of threads.
_IR = """
@done = internal global i64 0

define dso_local void @count(i64 %begin, i64 %end, i64 %number, ptr %context) {
entry:
  %counts = load ptr, ptr %context
  %threads.at = getelementptr i64, ptr %context, i64 1
  %threads = load i64, ptr %threads.at
  %strange = icmp uge i64 %number, %threads
  %step = select i1 %strange, i64 1000000, i64 1
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %loop, label %out
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %counts, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %step
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %out
out:
  ret void
}

; As `count`, but iteration 0 ends when all others have.
define dso_local void @first_is_last(i64 %begin, i64 %end, i64 %number, ptr %context) {
entry:
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %wait, label %tell
wait:
  %extent.at = getelementptr i64, ptr %context, i64 2
  %extent = load i64, ptr %extent.at
  %others = sub i64 %extent, 1
  %seen = load atomic i64, ptr @done acquire, align 8
  %all = icmp uge i64 %seen, %others
  br i1 %all, label %work, label %wait
tell:
  %before = atomicrmw add ptr @done, i64 1 release
  br label %work
work:
  call void @count(i64 %begin, i64 %end, i64 %number, ptr %context)
  ret void
}

define dso_local void @static(ptr %launch, i64 %times, i64 %extent, i64 %threads, ptr %context) {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %launch(ptr @count, i64 %extent, ptr %context, i64 %threads)
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %out
out:
  ret void
}

define dso_local void @shared(
    ptr %launch, i64 %times, i64 %extent, i64 %threads, ptr %context, i64 %step) {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @lw_share(
      ptr %launch, ptr @count, i64 %extent, ptr %context, i64 %threads, i64 %step)
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %out
out:
  ret void
}

define dso_local void @uneven(
    ptr %launch, i64 %times, i64 %extent, i64 %threads, ptr %context, i64 %step) {
  store i64 0, ptr @done
  call void @lw_share(
      ptr %launch, ptr @first_is_last, i64 %extent, ptr %context, i64 %threads, i64 %step)
  ret void
}
"""


@lru_cache(maxsize=1)
def _functions() -> dict[str, Callable[..., None]]:
    target = CpuTarget("cpu")
    code = LoadedCode(compile_object(_IR + dynamic_launch_runtime(), target))
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] + [ctypes.c_int64] * 3, ctypes.c_void_p)
    step_kind = ctypes.CFUNCTYPE(
        None, *[ctypes.c_void_p] + [ctypes.c_int64] * 3, ctypes.c_void_p, ctypes.c_int64
    )
    functions: dict[str, Callable[..., None]] = {
        name: (kind if name == "static" else step_kind)(code.address(name))
        for name in ("static", "shared", "uneven")
    }
    functions["static"].code = code  # type: ignore[attr-defined]
    return functions


def count_iterations(
    times: int, extent: int, threads: int, *, step: int | None = None, name: str = ""
) -> Counts:
    """Launch a loop several times; return how often each iteration ran.

    A part with a number of `threads` or more counts a million.

    Args:
        step: How many iterations a thread takes at a time; None for one part a thread.
        name: Of the function, if it is none of the usual two.
    """
    counts = np.zeros(extent, np.int64)
    context = np.array([counts.ctypes.data, threads, extent], np.int64)
    arguments = [launch_address(), times, extent, threads, context.ctypes.data]
    if step is None:
        _functions()["static"](*arguments)
    else:
        _functions()[name or "shared"](*arguments, step)
    return counts
