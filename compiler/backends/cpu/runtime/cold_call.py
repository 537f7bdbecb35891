"""Functions that are timed with cold caches: their arrays are evicted before each timed call.

The lines are flushed by the CPU's own instruction, which clears them from the caches of all cores.
Reading a large buffer instead would leave lines in the caches of other cores, and in a last level
that keeps only what the others dropped.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.executor.loaded_code import LoadedCode
from compiler.executor.memory import address_of
from compiler.runtime.time_calls import time_calls
from compiler.target.cpu import CpuTarget

LINE_BYTES = 64
"""The length of a cache line of x86-64 CPUs, and of AArch64 CPUs or a divisor of it."""
_MAX_SAMPLE_SECS = 50e-3
"""Time limit of the calls of a sample, with their evictions: flushing the arrays may take longer
than a short kernel. Chosen.
"""
_ENTRY = "lw_evict"
# By architecture: flush the line of an address, and wait for the end of all flushes. The sources
# are Intel's and Arm's manuals: CLFLUSH, and DC CIVAC, which Linux permits to programs.
_INSTRUCTIONS = {
    "x86_64": ("clflush ($0)", "mfence"),
    "aarch64": ("dc civac, $0", "dsb ish"),
}


class ColdCall:
    """A function without arguments that is timed with its arrays outside the caches.

    Args:
        run: The function.
        arrays: The memory that it reads and writes; each array is dense.
    """

    def __init__(self, run: Callable[[], object], arrays: Sequence[NDArray[Any]]) -> None:
        self._run = run
        self._arrays = arrays  # a reference: `evict` flushes their addresses
        self._spans = [lines_of(address_of(array), array.nbytes) for array in arrays]

    def __call__(self) -> None:
        """Run the function, with whatever is in the caches."""
        self._run()

    def evict(self) -> None:
        """Write all lines of the arrays to memory, and drop them from all caches."""
        evict = _evictor()
        for first, num_lines in self._spans:
            evict(first, num_lines)

    def mean_secs(self, num_threads: int, calls: int) -> float:
        """Return the mean seconds a call, over up to `calls` calls, each after an eviction.

        Evictions are not part of the time. There are fewer calls if they last too long.
        """
        end = time.perf_counter() + _MAX_SAMPLE_SECS
        total, done = 0.0, 0
        while done < calls and (not done or time.perf_counter() < end):
            self.evict()
            total += time_calls(self._run, num_threads, 1)
            done += 1
        return total / done


class LineSpan(NamedTuple):
    """Lines in a row: the address of the first one, and their number."""

    first: int
    num_lines: int


def lines_of(address: int, size_bytes: int) -> LineSpan:
    """Return the lines that have a byte of some memory."""
    first = address - address % LINE_BYTES
    return LineSpan(first, -(-(address + size_bytes - first) // LINE_BYTES) if size_bytes else 0)


def eviction_code(target: CpuTarget) -> str:
    """Return the LLVM IR of a function that flushes `num` lines from the line at `first` on."""
    flush, wait = _INSTRUCTIONS[target.arch]
    return f"""
define void @{_ENTRY}(i64 %first, i64 %num) {{
entry:
  %any = icmp ugt i64 %num, 0
  br i1 %any, label %loop, label %done
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %line = phi i64 [ %first, %entry ], [ %following, %loop ]
  call void asm sideeffect "{flush}", "r,~{{memory}}"(i64 %line)
  %following = add i64 %line, {LINE_BYTES}
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %num
  br i1 %more, label %loop, label %done
done:
  call void asm sideeffect "{wait}", "~{{memory}}"()
  ret void
}}
"""


@lru_cache(maxsize=1)
def _evictor() -> Callable[[int, int], None]:
    """Return the function for this host; it exists as long as the process."""
    llvm.initialize_native_asmparser()  # for the text of its instructions
    host = CpuTarget("cpu")
    code = LoadedCode(compile_object(eviction_code(host), host))
    entry = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)
    evict = entry(code.address(_ENTRY))
    evict.code = code  # type: ignore[attr-defined]
    return evict
