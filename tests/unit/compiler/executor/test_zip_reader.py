"""Zip files are read as the standard library reads them, or refused."""

from __future__ import annotations

import io
import random
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.executor.zip_reader import ZipError, read_zip

NAMES = st.text("abc./", min_size=1, max_size=8)
METHODS = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])


def _zip(files: dict[str, bytes], method: int, before: bytes = b"", comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    buffer.write(before)
    with zipfile.ZipFile(buffer, "a", method) as file:
        file.comment = comment
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


@given(st.dictionaries(NAMES, st.binary(max_size=200)), METHODS, st.binary(max_size=60))
def test_files_are_those_that_were_written(
    files: dict[str, bytes], method: int, before: bytes
) -> None:
    assert read_zip(_zip(files, method, before), 1 << 20) == files
    assert read_zip(_zip(files, method, before, b"a comment"), 1 << 20) == files


def test_files_behind_other_bytes_whose_offsets_do_not_count_them() -> None:
    assert read_zip(b"ELF" * 99 + _zip({"a": b"1"}, zipfile.ZIP_STORED), 9) == {"a": b"1"}


def test_more_bytes_than_the_limit_are_not_unpacked() -> None:
    bomb = _zip({"a": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 2000
    with pytest.raises(ZipError, match="more than 1000 bytes"):
        read_zip(bomb, 1000)
    lying = bytearray(bomb)
    end = lying.rindex(b"PK\1\2")
    lying[end + 24 : end + 28] = (100).to_bytes(4, "little")  # the size that it states
    with pytest.raises(ZipError, match="a is damaged"):
        read_zip(bytes(lying), 1000)


def test_damaged_zips_are_refused_or_unchanged() -> None:
    files = {"meta.json": b"{}" * 40, "kernel.o": random.Random(0).randbytes(300)}
    content = _zip(files, zipfile.ZIP_DEFLATED)
    rng = random.Random(1)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read = read_zip(bytes(damaged[: rng.choice((len(damaged), rng.randrange(600)))]), 9999)
        except ZipError:
            refused += 1
        else:
            assert sorted(read.values()) == sorted(files.values())
    assert refused > 1000


def test_what_this_reader_does_not_know_is_refused() -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(ZipError, match="unknown method"):
            read_zip(_zip({"a": b"1"}, method), 99)
    for content in (b"", b"PK", b"PK\5\6" + bytes(18)[:5]):
        with pytest.raises(ZipError):
            read_zip(content, 99)
