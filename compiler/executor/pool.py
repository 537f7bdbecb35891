"""A pool of threads, loaded when it is first needed, and never unloaded.

It has no threads until a launch needs them. A forked child starts with an empty pool, even if its
parent was in a launch.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

from .cores import available_cores
from .loaded_code import LoadedCode

LAUNCH = "lw_launch"
RESET = "lw_reset"
CORES = "lw_cores"
"""The variable that limits the busy threads; pools of older versions have a fixed limit."""


class ProcessPool:
    """The code of a pool of this process, loaded on first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may fork during `launch`
        self._code: LoadedCode | None = None
        # The forking thread holds the lock: in the child, no thread exists that could release it
        # otherwise.
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork,
        )

    def launch(self, code: Callable[[], bytes]) -> int:
        """Return the address of the function that runs a loop on threads.

        Args:
            code: Returns the object code of a pool; it is called once.
        """
        with self._lock:
            if self._code is None:
                self._code = LoadedCode(code())
                if CORES in self._code.names:
                    limit = ctypes.c_int64.from_address(self._code.address(CORES))
                    limit.value = available_cores()
                # The interpreter frees objects before the process ends. Threads still run this code
                # then, so one reference is never given back.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._code))
            return self._code.address(LAUNCH)

    def _after_fork(self) -> None:
        if self._code is not None:
            ctypes.CFUNCTYPE(None)(self._code.address(RESET))()
        self._lock.release()


PROCESS_POOL = ProcessPool()
"""The pool that kernels and models of this process share: that of the first one with threads."""
