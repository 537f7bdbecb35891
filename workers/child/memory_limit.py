"""The memory limit of a candidate, set by the child that measures it."""

from __future__ import annotations

import os
import resource
import sys
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from compiler.backends.backend import backend_of
from compiler.ir.analysis.specialize import sized
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import static_shape
from compiler.script.parser import parse
from compiler.target.error import TargetError
from compiler.target.registry import UnknownKindError
from compiler.target.target import Target

_NUM_COPIES = 3
"""Copies of the arrays of a workload: the inputs, the arrays that kernels run on, and constant
operands that a kernel reads packed.
"""
_MOST_OF_HOST = 0.5
"""The limit on a workload with its candidate, as a share of the memory of the host. Chosen."""


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """The memory of this process before its first candidate, in bytes.

    Attributes:
        address_bytes: The address space.
        data_bytes: The part of it that is private and writable.
        resident_bytes: The part of it that is in memory.
    """

    address_bytes: int
    data_bytes: int
    resident_bytes: int

    @classmethod
    def now(cls) -> OwnMemory:
        """Return the current memory."""
        with open("/proc/self/statm", "rb") as file:
            pages = [int(word) * resource.getpagesize() for word in file.read().split()]
        return cls(pages[0], pages[5], pages[1])

    def limit_for(self, workload: str, target: str, memory_bytes: int) -> None:
        """Limit this process to its own memory, that of a workload, and that of a candidate.

        Args:
            workload: The script text of the workload; an invalid one has no memory.
            target: The name of the candidate's target; an invalid one counts as a CPU.
            memory_bytes: The memory of a candidate.
        """
        most_bytes = max(memory_bytes, int(_MOST_OF_HOST * _host_bytes()))
        self.limit(target, min(memory_bytes + _NUM_COPIES * _array_bytes(workload), most_bytes))

    def limit(self, target: str, memory_bytes: int) -> None:
        """Limit this process to its own memory and that of a candidate.

        The limit is one of address space. The driver of a GPU reserves address space for the memory
        of all GPUs and of the host, far more than it uses, so a candidate for a GPU has a limit of
        private writable memory instead. Its kernels allocate nothing: the memory of the GPU holds
        the arrays of its workload.

        Args:
            target: The name of the candidate's target; an invalid one counts as a CPU.
            memory_bytes: The memory of a candidate.
        """
        is_address_space = not _reserves_address_space(target)
        address_bytes = self.address_bytes + memory_bytes
        data_bytes = self.data_bytes + memory_bytes
        _limit(resource.RLIMIT_AS, address_bytes if is_address_space else None)
        _limit(resource.RLIMIT_DATA, None if is_address_space else data_bytes)


@lru_cache(maxsize=4)
def _array_bytes(workload: str) -> int:
    """Return the size of the arrays of a workload; of a symbolic one, as it is timed."""
    try:
        buffers = sized(parse(workload)).buffers
    except Exception:
        return 0  # the request fails later, with this error as its message
    return sum(prod(static_shape(b)) * size_bytes(b.dtype) for b in buffers)


def _host_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _reserves_address_space(target: str) -> bool:
    try:
        parsed = Target(target)
        return backend_of(parsed).reserves_address_space(parsed)
    except (TargetError, UnknownKindError):
        return False  # the request fails later, with this error as its message


def _limit(kind: int, size_bytes: int | None) -> None:
    """Set a soft limit, or lift it."""
    _, hard = resource.getrlimit(kind)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(kind, (hard if size_bytes is None else min(size_bytes, most), hard))
