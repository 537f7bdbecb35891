"""The memory of a session in this process: regions by number, as the program in C has them."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass

from compiler.executor.elf import PAGE_BYTES
from compiler.remote.protocol import MAX_BODY_BYTES, DeviceFailure

_MAX_REGIONS = 1024


class RefusedRequestError(Exception):
    """A request that this device refuses; `failure` is its number in the protocol."""

    def __init__(self, failure: DeviceFailure) -> None:
        super().__init__(failure.name)
        self.failure = failure


@dataclass(slots=True, eq=False)
class SessionRegion:
    """Memory of a client: `size` bytes from `address` on, then a page that none may touch."""

    mapping: mmap.mmap
    address: int
    size: int
    mapped_bytes: int
    is_code: bool
    is_sealed: bool = False


class Regions:
    """The regions of a session, below a limit of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._last = 0
        self._regions: dict[int, SessionRegion] = {}

    def find(self, number: int) -> SessionRegion:
        """Return a region.

        Raises:
            RefusedRequestError: If there is none of this number.
        """
        if number not in self._regions:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        return self._regions[number]

    def reserve(self, size: int, *, is_code: bool) -> tuple[int, int]:
        """Return the number and the address of new memory, which holds zeros.

        Raises:
            RefusedRequestError: If there is no memory left.
        """
        usable = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        mapped = usable + mmap.PAGESIZE + (PAGE_BYTES if is_code else 0)
        if mapped > self._limit_bytes - self._used_bytes or len(self._regions) >= _MAX_REGIONS:
            raise RefusedRequestError(DeviceFailure.NO_MEMORY)
        try:
            mapping = mmap.mmap(-1, mapped, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise RefusedRequestError(DeviceFailure.NO_MEMORY) from error
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        address = -(-start // PAGE_BYTES) * PAGE_BYTES if is_code else start
        protect(address + usable, mmap.PAGESIZE, 0)
        self._last += 1
        self._regions[self._last] = SessionRegion(mapping, address, size, mapped, is_code)
        self._used_bytes += mapped
        return self._last, address

    def release(self, number: int) -> None:
        """Give a region back.

        Raises:
            RefusedRequestError: If there is none of this number.
        """
        region = self.find(number)
        del self._regions[number]
        self._used_bytes -= region.mapped_bytes

    def write(self, number: int, offset: int, content: bytes) -> None:
        """Write into a region that is not executable.

        Raises:
            RefusedRequestError: If there is none, or it ends before.
        """
        region = self.find(number)
        if region.is_sealed:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        _check_inside(region, offset, len(content))
        ctypes.memmove(region.address + offset, content, len(content))

    def read(self, number: int, offset: int, size: int) -> bytes:
        """Return bytes of a region of data.

        Raises:
            RefusedRequestError: If there is none, or it ends before.
        """
        region = self.find(number)
        if region.is_code:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        if size > MAX_BODY_BYTES:
            raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
        _check_inside(region, offset, size)
        return ctypes.string_at(region.address + offset, size)

    def seal(self, number: int, code_bytes: int, constant_bytes: int) -> None:
        """Make a region executable; no page of it is writable and executable at one time.

        Raises:
            RefusedRequestError: If it is none of code, the sizes do not fit, or the system refuses.
        """
        region = self.find(number)
        if not region.is_code or region.is_sealed:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        is_aligned = code_bytes % PAGE_BYTES == 0 and constant_bytes % PAGE_BYTES == 0
        if not is_aligned or code_bytes + constant_bytes > region.size:
            raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
        protect(region.address, code_bytes, mmap.PROT_READ | mmap.PROT_EXEC)
        protect(region.address + code_bytes, constant_bytes, mmap.PROT_READ)
        region.is_sealed = True

    def protect(self, number: int) -> None:
        """Make a region of data read-only: a kernel that writes into it crashes.

        Raises:
            RefusedRequestError: If there is none, or the system refuses.
        """
        region = self.find(number)
        if region.is_code:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        protect(region.address, max(region.size, 1), mmap.PROT_READ)
        region.is_sealed = True


def protect(address: int, size: int, protection: int) -> None:
    """Change the protection of pages.

    Raises:
        RefusedRequestError: If the system refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if size and libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
        raise RefusedRequestError(DeviceFailure.REFUSED)


def _check_inside(region: SessionRegion, offset: int, size: int) -> None:
    if offset > region.size or size > region.size - offset:
        raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
