"""The pool of threads that the kernels of this process share.

See `compiler.backends.cpu.codegen.threads.thread_pool`.
"""

from __future__ import annotations

from functools import lru_cache

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.thread_pool import thread_pool
from compiler.executor.pool import PROCESS_POOL
from compiler.target.cpu import CpuTarget


def launch_address() -> int:
    """Return the address of `lw_launch`, an argument of kernels with parallel loops."""
    return PROCESS_POOL.launch(pool_code)


def pool_code() -> bytes:
    """Return the object code of the pool for this host."""
    return compiled_pool("cpu")


@lru_cache(maxsize=4)
def compiled_pool(target: str) -> bytes:
    """Return the object code of the pool for a CPU target."""
    cpu = CpuTarget(target)
    return compile_object(thread_pool(cpu.arch, cpu.num_cores), cpu)
