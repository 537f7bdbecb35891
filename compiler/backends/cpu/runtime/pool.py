"""The thread pool of this process: loaded when a kernel first needs it, and never unloaded.

It has no threads until a launch needs them; see
`compiler.backends.cpu.codegen.threads.thread_pool`. A forked child starts with an empty pool, even
if its parent was in a launch.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.thread_pool import LAUNCH, RESET, thread_pool
from compiler.backends.cpu.runtime.load import load_object
from compiler.target.cores import available_cores
from compiler.target.cpu import CpuTarget


@dataclass(frozen=True, slots=True)
class _LoadedPool:
    """The loaded pool: its code, which the engine owns, and the addresses of its functions."""

    engine: llvm.ExecutionEngine
    launch: int
    reset: Callable[[], None]


class _ProcessPool:
    """The pool of the process, loaded on first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may fork during `launch`
        self._pool: _LoadedPool | None = None
        # The forking thread holds the lock: in the child, no thread exists that could release it
        # otherwise.
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork,
        )

    def launch(self) -> int:
        """Return the address of the function that runs a loop on threads."""
        with self._lock:
            if self._pool is None:
                self._pool = _load()
            return self._pool.launch

    def _after_fork(self) -> None:
        if self._pool is not None:
            self._pool.reset()
        self._lock.release()


def _load() -> _LoadedPool:
    target = CpuTarget("cpu")
    architecture = target.triple.split("-")[0]
    code = compile_object(thread_pool(architecture, available_cores()), target)
    engine = load_object(code, target.triple)
    reset = ctypes.CFUNCTYPE(None)(engine.get_function_address(RESET))
    return _LoadedPool(engine, int(engine.get_function_address(LAUNCH)), reset)


_POOL = _ProcessPool()


def launch_address() -> int:
    """Return the address of `lw_launch`, an argument of kernels with parallel loops."""
    return _POOL.launch()
