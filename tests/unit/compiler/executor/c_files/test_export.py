"""Kernels as objects, headers and libraries for C."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from compiler import ops
from compiler.driver import compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.c_files.c_header import c_header, c_name
from compiler.executor.c_files.elf_symbols import rename_symbols
from compiler.executor.elf import ObjectFile
from compiler.executor.error import ArtifactError, PackageError

CPUS = ("x86-64-v2", "cortex-a53", "cortex-a9", "spacemit-x60")


def _kernel(cpu: str) -> Artifact:
    return compile_kernel(ops.exp(64, dtype="float64"), f"cpu -mcpu={cpu} -num-cores=1")


@pytest.mark.parametrize("cpu", CPUS)
def test_an_object_exports_the_kernel_by_its_name(cpu: str, tmp_path: Path) -> None:
    kernel = _kernel(cpu)
    kernel.save(tmp_path / "exp.o")
    code = ObjectFile((tmp_path / "exp.o").read_bytes())
    image = code.link(1 << 29, lambda _: 1 << 29)
    assert list(image.addresses) == ["lw1_exp"]
    assert code.externals == ("exp",)


def test_what_is_written_for_c_is_read_as_the_artifact(tmp_path: Path) -> None:
    kernel = _kernel("cortex-a9")
    kernel.save(tmp_path / "exp.o")
    assert Artifact.load(tmp_path / "exp.o") == kernel


def test_the_header_has_a_parameter_for_each_array() -> None:
    kernel = compile_kernel(ops.cast(3, 4, out_dtype="bfloat16"), "cpu -mcpu=cortex-a53")
    text = c_header(kernel, ["cast.o"])
    assert "const float *A,\n    uint16_t *B,\n    void *workspace" in text
    assert "float32[3, 4], 48 bytes, read" in text
    odd = replace(kernel, name="größe/2", params=(replace(kernel.params[0], name="int"),))
    assert "static inline void gr__e_2_run(\n    const float *array0," in c_header(odd, [])
    assert c_name("2d") == "_2d"
    evil = replace(kernel, target="cpu */ int x;\n")
    assert c_header(evil, ["*/.o"]).startswith(
        "/* The kernel cast for cpu __ int x__, by Loopwright.\n   Link __.o, and -lm. */\n"
    )


def test_a_symbol_that_an_object_lacks_is_named() -> None:
    code = _kernel("cortex-a9").code
    with pytest.raises(PackageError, match="no symbol lw_other"):
        rename_symbols(code, {"lw_other": "x"})
    for size in range(16, len(code), 61):
        with pytest.raises(PackageError):
            rename_symbols(code[:size], {"lw_kernel": "x"})


def test_a_missing_linker_is_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArtifactError, match=r"install riscv64-linux-gnu-gcc, or write an object"):
        _kernel("spacemit-x60").save(tmp_path / "exp.so")
    assert list(tmp_path.iterdir()) == []


def test_a_linker_that_fails_is_quoted(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    damaged = replace(_kernel("x86-64-v2"), pool=b"no object")
    with pytest.raises(ArtifactError, match=r"cannot link exp\.so: .*exp_pool\.o"):
        damaged.save(tmp_path / "exp.so")


def test_a_kernel_for_a_gpu_is_not_written_for_c(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"only kernels for CPUs are written as \.h"):
        replace(_kernel("x86-64-v2"), backend="cuda").save(tmp_path / "exp.h")
