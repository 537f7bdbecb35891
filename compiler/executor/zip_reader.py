"""Read the small zip files of kernels.

The standard library's `zipfile` reads them too, but importing it takes longer than loading a
kernel. The format is that of PKWARE's APPNOTE.TXT, without encryption, 64-bit sizes, or parts on
other disks. Other bytes may precede the zip.
"""

from __future__ import annotations

import struct
import zlib

_END = struct.Struct("<4s4H2IH")
_DIRECTORY = struct.Struct("<4s4xHH4xIIIHHH8xI")
_LOCAL = struct.Struct("<4s22x2H")
_MAX_COMMENT_BYTES = 0xFFFF
_ENCRYPTED = 1
_STORED, _DEFLATED = 0, 8


class ZipError(ValueError):
    """Bytes that are no zip file that is read here."""


def read_zip(content: bytes, limit_bytes: int) -> dict[str, bytes]:
    """Return the files of a zip by their names.

    Args:
        content: The bytes of the zip, perhaps behind others.
        limit_bytes: The most bytes that all files may have.

    Raises:
        ZipError: If it is none, is damaged, or has more bytes.
    """
    try:
        return _read(content, limit_bytes)
    except (struct.error, zlib.error, UnicodeDecodeError) as error:
        raise ZipError(f"a damaged zip file: {error}") from error


def _read(content: bytes, limit_bytes: int) -> dict[str, bytes]:
    end = content.rfind(b"PK\5\6", max(0, len(content) - _MAX_COMMENT_BYTES - _END.size))
    if end < 0:
        raise ZipError("no zip file")
    _, _, _, _, count, size, start, _ = _END.unpack_from(content, end)
    before = end - size - start  # the bytes that precede the zip
    if before < 0:
        raise ZipError("the directory of the zip is cut off")
    files, at, total = {}, before + start, 0
    for _ in range(count):
        row = _DIRECTORY.unpack_from(content, at)
        magic, flags, method, crc, packed, unpacked, name_bytes, extra, comment, offset = row
        if magic != b"PK\1\2" or flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            raise ZipError("the zip has an entry that is encrypted, or of an unknown method")
        total += unpacked
        if total > limit_bytes:
            raise ZipError(f"it unpacks to more than {limit_bytes} bytes")
        name = content[at + _DIRECTORY.size : at + _DIRECTORY.size + name_bytes].decode("ascii")
        at += _DIRECTORY.size + name_bytes + extra + comment
        data = _data(content, before + offset, packed)
        if method == _DEFLATED:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, unpacked + 1)
        if len(data) != unpacked or zlib.crc32(data) != crc:
            raise ZipError(f"its file {name} is damaged")
        files[name] = data
    return files


def _data(content: bytes, local: int, size: int) -> bytes:
    """Return the bytes of a file behind its local header."""
    magic, name_bytes, extra_bytes = _LOCAL.unpack_from(content, local)
    start = local + _LOCAL.size + name_bytes + extra_bytes
    if magic != b"PK\3\4" or start + size > len(content):
        raise ZipError("a file of the zip is cut off")
    return content[start : start + size]
