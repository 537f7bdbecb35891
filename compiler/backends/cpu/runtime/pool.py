"""The pool of threads of this process: made when a kernel first wants it, and never unloaded.

It has no threads until a launch needs them; see `compiler.backends.cpu.codegen.thread_pool`. A
forked child starts with an empty pool, whatever its parent was doing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.thread_pool import LAUNCH, RESET, thread_pool
from compiler.backends.cpu.runtime.load import load_object
from compiler.target.cores import available_cores
from compiler.target.cpu import CpuTarget


@dataclass(frozen=True, slots=True)
class _Pool:
    """The loaded pool; the engine holds the code that its threads run."""

    engine: llvm.ExecutionEngine
    launch: int
    reset: Callable[[], None]


class _OnePool:
    """The pool, or None as long as nobody has wanted it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler of a signal may fork amid `launch`
        self._pool: _Pool | None = None
        # Held over a fork, so that the child never finds it taken by a thread that it lacks.
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork,
        )

    def launch(self) -> int:
        """Return the address of the function that runs a loop on threads."""
        with self._lock:
            if self._pool is None:
                self._pool = _make()
            return self._pool.launch

    def _after_fork(self) -> None:
        if self._pool is not None:
            self._pool.reset()
        self._lock.release()


def _make() -> _Pool:
    target = CpuTarget("cpu")
    architecture = target.triple.split("-")[0]
    code = compile_object(thread_pool(architecture, available_cores()), target)
    engine = load_object(code, target.triple)
    reset = ctypes.CFUNCTYPE(None)(engine.get_function_address(RESET))
    return _Pool(engine, int(engine.get_function_address(LAUNCH)), reset)


_THE_POOL = _OnePool()


def launch_address() -> int:
    """Return the address of `lw_launch`, which a kernel with parallel loops is given."""
    return _THE_POOL.launch()
