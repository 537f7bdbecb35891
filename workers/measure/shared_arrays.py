"""Arrays that outlive a child: stored in memory files of the runner, read-only in the child.

So an expensive result of the oracle survives a crashed candidate. A stray write of a kernel can't
change the expected result: it is a segmentation fault.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

MAX_BYTES = 256 << 20
"""The maximum size of the arrays under one key."""

_PAGE = mmap.PAGESIZE
_INDEX_AT = struct.Struct("<Q")  # at the start of a file: where its index is; 0 while it is written


class SharedArrays:
    """Named arrays under keys, one key a slot; the slot that was used least recently is reused.

    Args:
        slots: Descriptors of memory files, as `os.memfd_create` gives them.
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = dict(enumerate(slots))  # in the order of use
        self._keys = {slot: _read_key(fd) for slot, fd in self._slots.items()}

    def find(self, key: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays under a key, read-only; None if there are none."""
        for slot, fd in self._slots.items():
            if self._keys[slot] == key:
                self._slots[slot] = self._slots.pop(slot)
                return _read(fd)
        return None

    def put(self, key: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
        """Store copies of arrays, and return them, read-only.

        The arrays themselves are returned if there is no slot, or they are too large. Arrays of the
        key whose slot is reused must not be read any more.
        """
        if not self._slots or sum(array.nbytes for array in arrays.values()) > MAX_BYTES:
            return dict(arrays)
        slot = next(iter(self._slots))
        fd = self._slots[slot] = self._slots.pop(slot)
        self._keys[slot] = None
        _write(fd, key, arrays)
        self._keys[slot] = key
        return _read(fd)


def _write(fd: int, key: str, arrays: Arrays) -> None:
    os.ftruncate(fd, 0)
    offset, entries = _PAGE, []
    for name, array in arrays.items():
        content = np.ascontiguousarray(array)
        entries.append([name, content.dtype.name, list(array.shape), offset])
        _write_all(fd, content.reshape(-1).view(np.uint8).data, offset)
        offset += -(-content.nbytes // _PAGE) * _PAGE
    _write_all(fd, memoryview(json.dumps({"key": key, "arrays": entries}).encode()), offset)
    _write_all(fd, memoryview(_INDEX_AT.pack(offset)), 0)


def _write_all(fd: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(fd, content, offset)
        content, offset = content[written:], offset + written


def _read(fd: int) -> dict[str, NDArray[Any]]:
    file = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    return {
        name: np.frombuffer(file, dtype, int(np.prod(shape, dtype=np.int64)), offset).reshape(shape)
        for name, dtype, shape, offset in _index(fd)["arrays"]
    }


def _read_key(fd: int) -> str | None:
    key = _index(fd)["key"] if os.fstat(fd).st_size else None
    return None if key is None else str(key)


def _index(fd: int) -> dict[str, Any]:
    (offset,) = _INDEX_AT.unpack(os.pread(fd, _INDEX_AT.size, 0))
    if offset == 0:
        return {"key": None, "arrays": []}
    index: dict[str, Any] = json.loads(os.pread(fd, os.fstat(fd).st_size - offset, offset))
    return index
