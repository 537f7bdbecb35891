"""Files of kernels: what is refused, and that equal kernels are equal files."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler import ops
from compiler.backends.module import Module
from compiler.driver import build, compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.executor.kernel import load_kernel
from compiler.executor.kernel_file import load_kernels
from compiler.package.build_package import build_package, save_package
from tests.model_plans import classifier


@pytest.fixture(scope="module")
def matmul() -> Module:
    return build(ops.matmul(4, 6, 8), "cpu -num-cores=1")


def test_equal_programs_give_equal_files() -> None:
    func = ops.matmul(4, 6, 8)
    assert compile_kernel(func).to_bytes() == compile_kernel(func).to_bytes()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", b"\x7fELF" + b"0" * 100])
def test_bytes_that_are_no_artifact_are_refused(content: bytes) -> None:
    with pytest.raises(ArtifactError, match="not a Loopwright artifact"):
        Artifact.from_bytes(content)


def test_a_model_is_refused_with_the_function_that_loads_it(tmp_path: Path) -> None:
    path = tmp_path / "mnist.lwm"
    save_package(build_package(classifier()[0]), path)
    for load in (load_kernel, load_kernels, Module.load):
        with pytest.raises(ArtifactError, match="the file holds a whole model: use load"):
            load(path)


@pytest.mark.parametrize("name", ["k.c", "a.so.1", "a.xyz", "a.lwm"])
def test_an_unknown_suffix_is_refused(matmul: Module, name: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"expected .lwk for load_kernel, or .o, .h, .so for"):
        matmul.artifact.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["k.lwk", "kernel", "v1.2/kernel", "k.tar"])
def test_other_names_are_artifacts(matmul: Module, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    matmul.artifact.save(path)
    assert Artifact.load(path) == matmul.artifact


def test_an_artifact_without_its_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.lwk"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("meta.json", "{}")
    with pytest.raises(ArtifactError):
        Module.load(path)


def test_an_artifact_of_another_format_is_refused(matmul: Module, tmp_path: Path) -> None:
    path = tmp_path / "new.lwk"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("meta.json", '{"format": 99}')
        file.writestr("kernel.o", matmul.artifact.code)
    with pytest.raises(ArtifactError, match="format 99"):
        Artifact.load(path)


def test_damaged_object_code_is_an_error_not_a_crash(matmul: Module, tmp_path: Path) -> None:
    path = tmp_path / "damaged.lwk"
    with zipfile.ZipFile(path, "w") as file, zipfile.ZipFile(io.BytesIO(good(matmul))) as whole:
        file.writestr("meta.json", whole.read("meta.json"))
        file.writestr("kernel.o", whole.read("kernel.o")[:-1] + b"x")
    with pytest.raises(ArtifactError, match="is damaged"):
        Module.load(path)


def good(module: Module) -> bytes:
    return module.artifact.to_bytes()


def with_meta(artifact: Artifact, **changes: Any) -> bytes:
    """Return the artifact's file with other words in its meta.json."""
    with zipfile.ZipFile(io.BytesIO(artifact.to_bytes())) as file:
        meta, code = json.loads(file.read("meta.json")), file.read("kernel.o")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("meta.json", json.dumps({**meta, **changes}))
        file.writestr("kernel.o", code)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"params": 5},
        {"params": [{"name": "A", "shape": ["x"], "dtype": "float32", "is_output": True}]},
        {"workspace_bytes": "x"},
        {"workspace_bytes": -1},
        {"num_threads": 0},
        {"num_threads": "2"},
        {"target": 5},
        {"features": None},
        {"triple": None},
        {"more": 1},
    ],
)
def test_a_strange_description_is_an_error(matmul: Module, changes: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="not a Loopwright artifact"):
        Artifact.from_bytes(with_meta(matmul.artifact, **changes))


@pytest.mark.parametrize("meta", [b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_describes_no_kernel_is_an_error(meta: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("meta.json", meta)
        file.writestr("kernel.o", b"")
    with pytest.raises(ArtifactError, match="not a Loopwright artifact"):
        Artifact.from_bytes(buffer.getvalue())


def test_a_flipped_byte_is_an_error_or_changes_nothing(matmul: Module) -> None:
    content = matmul.artifact.to_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        with contextlib.suppress(ArtifactError):
            assert Artifact.from_bytes(bytes(damaged)) == matmul.artifact


def test_an_artifact_for_a_cpu_names_no_backend_so_that_older_versions_read_it(
    matmul: Module,
) -> None:
    content = matmul.artifact.to_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert "backend" not in json.loads(file.read("meta.json"))
    assert Artifact.from_bytes(content).backend == "cpu"


def test_an_artifact_of_another_backend_names_it(matmul: Module) -> None:
    artifact = replace(matmul.artifact, backend="toy")
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    with pytest.raises(ArtifactError, match=r"no backend for 'toy' targets: registered: cpu"):
        Module(artifact)


def test_a_kernel_for_an_unknown_target_is_not_loaded(matmul: Module) -> None:
    artifact = Artifact.from_bytes(with_meta(matmul.artifact, target="cpu -mcpu=nothing"))
    with pytest.raises(ArtifactError, match="unknown CPU 'nothing'"):
        Module(artifact)
