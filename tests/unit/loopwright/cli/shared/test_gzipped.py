"""Gzipped files of records."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.gzipped import gzip_file, is_to_be_gzipped, plain_file

TEXT = b'{"kind": "header"}\n' * 1000


def test_a_copy_is_unpacked_to_the_same_bytes(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(TEXT)
    gzip_file(plain, packed)
    assert gzip.decompress(packed.read_bytes()) == TEXT
    (tmp_path / "folder").mkdir()
    assert plain_file(packed, tmp_path / "folder").read_bytes() == TEXT


def test_the_same_records_are_the_same_bytes(tmp_path: Path) -> None:
    plain = tmp_path / "a.jsonl"
    plain.write_bytes(TEXT)
    for name in ("b.gz", "c.gz"):
        gzip_file(plain, tmp_path / name)
    assert (tmp_path / "b.gz").read_bytes() == (tmp_path / "c.gz").read_bytes()


def test_a_plain_file_is_read_in_place(tmp_path: Path) -> None:
    plain = tmp_path / "a.jsonl"
    plain.write_bytes(TEXT)
    assert plain_file(plain, tmp_path) == plain


@pytest.mark.parametrize("keep", [10, 40])
def test_a_damaged_file_is_an_input_error(tmp_path: Path, keep: int) -> None:
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(TEXT)[:keep])
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be unpacked"):
        plain_file(packed, tmp_path / "folder")


def test_the_name_decides() -> None:
    assert is_to_be_gzipped(Path("records.jsonl.gz"))
    assert not is_to_be_gzipped(Path("records.jsonl"))
