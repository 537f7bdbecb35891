"""The BLAS that NumPy came with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

# OpenBLAS's functions get this prefix, this suffix or both where several copies share a process.
_PREFIXES = ("scipy_", "")
_SUFFIXES = ("64_", "")


def matmul(
    a: Any, b: Any, c: Any, transpose_a: int = 0, transpose_b: int = 0, *, num_threads: int = 0
) -> None:
    """Compute `c = a @ b` of matrices or of batches of them, each operand transposed if asked.

    Args:
        num_threads: The most threads to use; 0 for the library's choice.
    """
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    with _threads(num_threads):
        np.matmul(left, right, out=c)


@contextmanager
def _threads(num_threads: int) -> Iterator[None]:
    """Limit the threads of OpenBLAS; any other BLAS keeps the number that it chose."""
    functions = _thread_functions() if num_threads else None
    if functions is None:
        yield
        return
    get, limit = functions
    before = get()
    if before == num_threads:
        yield
        return
    limit(num_threads)
    try:
        yield
    finally:
        limit(before)


@cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what reads and what sets the number of threads of NumPy's OpenBLAS; None without."""
    for path in _loaded_libraries():
        library = ctypes.CDLL(path)
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
                try:
                    get, limit = (library[name] for name in names)
                except AttributeError:
                    continue
                limit.restype = None
                return get, limit
    return None


def _loaded_libraries() -> list[str]:
    """Return the paths of OpenBLAS in this process, NumPy's first: SciPy may have its own."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    fields = (line.split(maxsplit=5) for line in lines)
    paths = {parts[5] for parts in fields if len(parts) == 6 and "openblas" in parts[5].lower()}
    return sorted(paths, key=lambda path: ("numpy" not in path, path))
