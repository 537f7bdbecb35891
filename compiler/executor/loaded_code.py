"""Object code in the memory of this process, without a compiler or a linker."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Collection, Iterator
from functools import cache

from .elf import PAGE_BYTES, ObjectFile
from .error import PackageError

# The C library and the library of mathematics; the helpers of compilers for half floats.
_LIBRARIES = (None, "libm.so.6", "libgcc_s.so.1")


class LoadedCode:
    """Object code that can be called; it stays loaded as long as this object lives.

    No page is writable and executable at any time. The pages are new, so Linux makes the caches of
    instructions coherent when they become executable.

    Raises:
        PackageError: If it can't be linked, or the system refuses to execute it.
    """

    def __init__(self, content: bytes) -> None:
        code = ObjectFile(content)
        # It has an address at a multiple of PAGE_BYTES. It is private: a forked child has its own
        # variables.
        self._memory = mmap.mmap(
            -1,
            code.size_bytes + PAGE_BYTES,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
        )
        # No exported buffer may exist when the memory is released, so only the address is kept.
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        base = -(-start // PAGE_BYTES) * PAGE_BYTES
        image = code.link(base, external_address)
        self._memory[base - start : base - start + len(image.content)] = image.content
        _protect(base, image.code_bytes, mmap.PROT_READ | mmap.PROT_EXEC)
        _protect(base + image.code_bytes, image.constant_bytes, mmap.PROT_READ)
        self._addresses = image.addresses

    @property
    def names(self) -> Collection[str]:
        """Return the names of its functions and variables."""
        return self._addresses

    def address(self, name: str) -> int:
        """Return the address of a function or of a variable.

        Raises:
            PackageError: If there is none of this name.
        """
        if name not in self._addresses:
            raise PackageError(f"the object code has no function {name!r}")
        return self._addresses[name]


@cache
def external_address(name: str) -> int:
    """Return the address of a function of the system.

    Raises:
        PackageError: If no library has it.
    """
    for library in _libraries():
        try:
            # Not by `getattr`, which knows names of Python too.
            return int(ctypes.cast(library[name], ctypes.c_void_p).value or 0)
        except AttributeError:
            continue
    raise PackageError(f"the object code calls {name!r}, which this system does not have")


def _libraries() -> Iterator[ctypes.CDLL]:
    for name in _LIBRARIES:
        try:
            yield ctypes.CDLL(name, use_errno=True)
        except OSError:
            continue


def _protect(address: int, size: int, protection: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if size and library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
        reason = os.strerror(ctypes.get_errno())
        raise PackageError(f"this system does not let the process load code: {reason}")
