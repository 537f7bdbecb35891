"""The pool of threads that the kernels of this process share.

See `compiler.backends.cpu.codegen.threads.thread_pool`.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.thread_pool import thread_pool
from compiler.executor.pool import ProcessPool
from compiler.target.cores import available_cores
from compiler.target.cpu import CpuTarget

_POOL = ProcessPool()


def launch_address() -> int:
    """Return the address of `lw_launch`, an argument of kernels with parallel loops."""
    return _POOL.launch(_code)


def _code() -> bytes:
    target = CpuTarget("cpu")
    return compile_object(thread_pool(target.arch, available_cores()), target)
