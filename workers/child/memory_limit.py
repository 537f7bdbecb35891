"""The memory limit of a candidate, set by the child that measures it."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

from compiler.backends.backend import backend_of
from compiler.target.error import TargetError
from compiler.target.registry import UnknownKindError
from compiler.target.target import Target


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
