"""Rename symbols of an object file: all kernels have one name, and a program several kernels."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ..error import PackageError

_SYMBOL_TABLE = 2  # sh_type
# By the class of the file: the form of the section table's place in the header, the places of a
# section's type, offset, size and link in its row, and the form of such a number.
_WIDE = ("<40xQ10xHH", (4, 24, 32, 40), "<Q", 24)
_NARROW = ("<32xI10xHH", (4, 16, 20, 24), "<I", 16)


def rename_symbols(content: bytes, names: Mapping[str, str]) -> bytes:
    """Return an object file with other names for some of its symbols.

    The table of names is written again at the end of the file, with the new names behind the old
    ones: offsets into it, also those of sections, stay valid.

    Raises:
        PackageError: If it is no object file, or has no symbol of such a name.
    """
    try:
        return _renamed(bytearray(content), names)
    except (struct.error, LookupError, ValueError) as error:
        raise PackageError(f"malformed object code: {error}") from error


def _renamed(content: bytearray, names: Mapping[str, str]) -> bytes:
    tables, fields, form, symbol_bytes = _WIDE if content[4] == 2 else _NARROW
    start, size, count = struct.unpack_from(tables, content)
    type_at, offset_at, size_at, link_at = fields
    for row in range(start, start + size * count, size):
        if struct.unpack_from("<I", content, row + type_at)[0] == _SYMBOL_TABLE:
            break
    else:
        raise PackageError("the object code has no symbols")
    (symbols,) = struct.unpack_from(form, content, row + offset_at)
    (symbols_bytes,) = struct.unpack_from(form, content, row + size_at)
    strings_row = start + size * struct.unpack_from("<I", content, row + link_at)[0]
    (strings,) = struct.unpack_from(form, content, strings_row + offset_at)
    (strings_bytes,) = struct.unpack_from(form, content, strings_row + size_at)
    table = content[strings : strings + strings_bytes]
    missing = set(names)
    for at in range(symbols, symbols + symbols_bytes, symbol_bytes):
        (name_at,) = struct.unpack_from("<I", content, at)
        name = table[name_at : table.index(0, name_at)].decode()
        if name in names:
            struct.pack_into("<I", content, at, len(table))
            table += names[name].encode() + b"\0"
            missing.discard(name)
    if missing:
        raise PackageError(f"the object code has no symbol {', '.join(sorted(missing))}")
    struct.pack_into(form, content, strings_row + offset_at, len(content))
    struct.pack_into(form, content, strings_row + size_at, len(table))
    return bytes(content + table)
