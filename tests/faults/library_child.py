"""The disposable child with faulty libraries, which are named after their faults."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workers.child.child import main
from workers.libraries.kernel_sets import CORE_TYPE, LibraryCode
from workers.libraries.library import Array, Library, LibraryCall
from workers.libraries.load import load_library


def _is_wrong(result: Array) -> Any:
    return result + 1


def _is_another_type(result: Array) -> Any:
    return result.astype(np.float64)


def _is_another_shape(result: Array) -> Any:
    return result[:-1]


def _crashes(_: Array) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def _raises(_: Array) -> Any:
    raise RuntimeError("a bug of the library")


def _hangs(_: Array) -> Any:
    time.sleep(600)


def _spin() -> None:
    while True:
        pass


FAULTS: dict[str, Callable[[Array], Any]] = {
    "is wrong": _is_wrong,
    "is another type": _is_another_type,
    "is another shape": _is_another_shape,
    "crashes": _crashes,
    "raises": _raises,
    "hangs": _hangs,
}


class Faulty:
    """NumPy, with a fault in its results or inputs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numpy: Library = load_library("numpy")
        self._num_calls = 0

    def start(self, num_threads: int) -> str:
        self._numpy.start(num_threads)
        return self._name

    def kernel_set(self) -> LibraryCode:
        if self._name == "is old":
            return LibraryCode("Haswell", CORE_TYPE)
        return LibraryCode(os.environ.get(CORE_TYPE, "Haswell"), CORE_TYPE)

    def prepare(self, operator: str, inputs: Sequence[Array]) -> LibraryCall:
        call = self._numpy.prepare(operator, inputs)

        def run() -> Any:
            self._num_calls += 1
            if self._name == "writes its input":
                inputs[0][...] = 0
            if self._name == "crashes later" and self._num_calls > 20:
                _crashes(inputs[0])
            if self._name == "falls back" and CORE_TYPE not in os.environ:
                time.sleep(2e-3)
            if self._name == "crashes with another" and CORE_TYPE in os.environ:
                _crashes(inputs[0])
            if self._name == "spins" and self._num_calls == 1:
                threading.Thread(target=_spin, daemon=True).start()
            result = call.run()
            return FAULTS[self._name](result) if self._name in FAULTS else result

        return LibraryCall(run, call.result)


def load(name: str) -> Library:
    return load_library(name) if name in {"numpy", "torch", "unknown"} else Faulty(name)


if __name__ == "__main__":
    main(load=load)
