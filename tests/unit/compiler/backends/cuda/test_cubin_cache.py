"""The cache of compiled sources: each source is compiled once, and failures are kept, too."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from compiler.backends.cuda import cubin_cache
from compiler.backends.cuda.cubin_cache import compile_cached, cubin_directory, trim
from compiler.backends.cuda.nvrtc import CompiledSource, compile_cuda
from compiler.backends.error import BuildError

KERNEL = 'extern "C" __global__ void fill(int* data) { data[threadIdx.x] = 3; }\n'


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPWRIGHT_CACHE", str(tmp_path))
    return tmp_path / "cubins"


@pytest.fixture
def archs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the architectures of the compilations, in order."""
    archs: list[str] = []

    def counted(text: str, arch: str) -> CompiledSource:
        archs.append(arch)
        return compile_cuda(text, arch)

    monkeypatch.setattr(cubin_cache, "compile_cuda", counted)
    return archs


def test_a_source_is_compiled_once_for_each_architecture(archs: list[str]) -> None:
    first = compile_cached(KERNEL, "sm_80")
    assert compile_cached(KERNEL, "sm_80") == first
    assert compile_cached(KERNEL, "sm_90a") != first
    assert archs == ["sm_80", "sm_90a"]


def test_a_failure_is_kept_with_its_message(archs: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(BuildError, match='expected a ";"'):
            compile_cached(KERNEL.replace("= 3;", "= 3"), "sm_80")
    assert archs == ["sm_80"]


@pytest.mark.parametrize("damage", [b"", b"damaged", None])
def test_a_damaged_entry_is_compiled_again(damage: bytes | None) -> None:
    first = compile_cached(KERNEL, "sm_80")
    (entry,) = cubin_directory().iterdir()
    entry.write_bytes(entry.read_bytes()[:-9] if damage is None else damage)
    assert compile_cached(KERNEL, "sm_80") == first
    assert compile_cached(KERNEL, "sm_80") == first


def test_several_processes_share_the_cache() -> None:
    sources = [KERNEL.replace("3", str(number)) for number in range(3)] * 2
    with get_context("fork").Pool(3) as pool:
        compiled = pool.map(_compiled_and_trimmed, sources)
    assert compiled[:3] == compiled[3:] == [compile_cuda(text, "sm_80").ptx for text in sources[:3]]
    assert all(entry.suffix == ".bin" for entry in cubin_directory().iterdir())


def _compiled_and_trimmed(text: str) -> str:
    compile_cached(text, "sm_80")
    trim(0)  # meanwhile, others read and write
    return compile_cached(text, "sm_80").ptx


def test_the_oldest_entries_make_room(directory: Path) -> None:
    directory.mkdir(parents=True)
    for number in range(8):
        path = directory / f"{number:064x}.bin"
        path.write_bytes(bytes(100))
        os.utime(path, (number, number))
    trim(900)
    assert len(list(directory.iterdir())) == 8
    trim(700)
    assert sorted(int(path.stem, 16) for path in directory.iterdir()) == [3, 4, 5, 6, 7]


def test_a_cache_that_cannot_be_written_is_no_error(directory: Path) -> None:
    directory.write_text("a file, and no folder")
    assert compile_cached(KERNEL, "sm_80").cubin.startswith(b"\x7fELF")
