"""Modules and artifacts: what they refuse, and that they load anywhere."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psutil
import pytest

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.runtime.peak import fma_peak_gflops, kernel
from compiler.backends.module import Module
from compiler.backends.time_evaluator import time_evaluator
from compiler.driver import build, compile_artifact
from compiler.runtime.artifact import Artifact, ArtifactError
from compiler.runtime.memory import aligned_empty
from compiler.runtime.param_check import ArgumentError
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS
from compiler.target.error import TargetError
from compiler.target.target import Target

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def matmul() -> Module:
    return build(ops.matmul(4, 6, 8), "cpu -num-cores=1")


def test_a_saved_kernel_runs_in_another_process(matmul: Module, tmp_path: Path) -> None:
    path = tmp_path / "matmul.lwk"
    matmul.save(path)
    program = (
        "import sys, numpy as np\n"
        "from compiler.backends.module import Module\n"
        "c = np.empty((4, 6), 'float32')\n"
        "Module.load(sys.argv[1])(np.ones((4, 8), 'float32'), np.ones((8, 6), 'float32'), c)\n"
        "assert (c == 8).all(), c\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)


def test_equal_programs_give_equal_files() -> None:
    func = ops.matmul(4, 6, 8)
    assert compile_artifact(func).to_bytes() == compile_artifact(func).to_bytes()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", b"\x7fELF" + b"0" * 100])
def test_bytes_that_are_no_artifact_are_refused(content: bytes) -> None:
    with pytest.raises(ArtifactError, match="not a Loopwright artifact"):
        Artifact.from_bytes(content)


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


def test_code_for_features_that_the_host_lacks_is_refused(matmul: Module) -> None:
    foreign = replace(matmul.artifact, features="+avx1024")
    with pytest.raises(ArtifactError, match=r"has \+avx1024"):
        Module(foreign)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "sapphirerapids"])
def test_code_for_another_cpu_says_what_it_needs(cpu: str) -> None:
    """The host is taken for one that has the oldest features only."""
    artifact = compile_artifact(ops.matmul(4, 6, 8), f"cpu -mcpu={cpu}")
    with (
        mock.patch("compiler.backends.cpu.runtime.module.host_features", return_value="+sse2,+avx"),
        pytest.raises(ArtifactError, match=r"\+avx2.*\+fma"),
    ):
        Module(artifact)


def test_code_for_another_architecture_is_refused() -> None:
    artifact = compile_artifact(ops.matmul(4, 6, 8), "cpu -mcpu=neoverse-n1")
    with pytest.raises(ArtifactError, match="aarch64"):
        Module(artifact)


def test_arguments_that_do_not_fit_are_refused(matmul: Module) -> None:
    a, b, c = (np.ones(s, "float32") for s in ((4, 8), (8, 6), (4, 6)))
    with pytest.raises(ArgumentError, match=r"takes 3 arrays \(A, B, C\): got 2"):
        matmul(a, b)
    with pytest.raises(ArgumentError, match=r"parameter B is float32\[6, 8\]: expected"):
        matmul(a, b.T.copy(), c)
    with pytest.raises(ArgumentError, match="parameter A is float64"):
        matmul(a.astype("float64"), b, c)
    with pytest.raises(ArgumentError, match="parameter A is not contiguous"):
        matmul(np.ones((8, 4), "float32").T, b, c)
    with pytest.raises(ArgumentError, match="parameter A is a list"):
        matmul([1.0], b, c)
    c.flags.writeable = False
    with pytest.raises(ArgumentError, match="parameter C is written, and the array is read-only"):
        matmul(a, b, c)


def test_an_output_that_overlaps_an_input_is_refused() -> None:
    module = build(ops.relu(8), "cpu -num-cores=1")
    room = np.ones(12, "float32")
    with pytest.raises(ArgumentError, match="overlaps parameter A"):
        module(room[:8], room[4:])


def test_a_closed_module_says_so() -> None:
    module = build(ops.relu(8), "cpu -num-cores=1")
    module.close()
    module.close()
    with pytest.raises(ArgumentError, match="was closed"):
        module(np.ones(8, "float32"), np.ones(8, "float32"))


def test_one_module_may_be_called_from_several_threads() -> None:
    """The intermediate lives in the workspace: shared, threads would mix their results."""
    module = build(ops.mm_relu(96, 96, 96), "cpu -num-cores=1")
    wrong: list[int] = []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = rng.random((96, 96), "float32"), rng.random((96, 96), "float32")
        c = np.empty((96, 96), "float32")
        for _ in range(10):
            module(a, b, c)
            if not np.allclose(c, a @ b, rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dlpack_arrays_are_taken() -> None:
    class Speaker:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    module = build(ops.relu(8), "cpu -num-cores=1")
    out = np.empty(8, "float32")
    module(Speaker(np.full(8, -1, "float32")), out)
    assert (out == 0).all()


def test_a_timing_holds_its_samples(matmul: Module) -> None:
    arrays = [aligned_empty(p.shape, p.dtype) for p in matmul.params]
    for array in arrays:
        array[:] = 1
    timing = time_evaluator(matmul, *arrays, samples=7)
    assert len(timing.secs) == 7
    assert 0 < timing.min_secs <= timing.median_secs <= max(timing.secs)
    with pytest.raises(ValueError, match="samples is 0"):
        time_evaluator(matmul, *arrays, samples=0)


def test_the_peak_is_a_rate_that_a_core_can_have() -> None:
    assert 1 < fma_peak_gflops(secs=0.02) < 1000


@pytest.mark.parametrize("cpu", CPUS)
def test_the_peak_of_a_cpu_is_measured_without_calls(cpu: str) -> None:
    """A fused multiply-add that the CPU lacks is a call, a hundred times slower than any kernel."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    assert not re.search(r"\b(call|bl)\b|fmaf", disassemble(kernel(target), target))


def test_modules_are_unloaded_and_leak_nothing() -> None:
    """Hundreds of kernels come and go: the process does not grow by more than a few MB."""
    artifact = compile_artifact(ops.matmul(32, 32, 32))
    process = psutil.Process()

    def churn(times: int) -> int:
        for _ in range(times):
            Module(artifact).close()
        return int(process.memory_info().rss)

    before = churn(100)
    assert churn(400) - before < 8 << 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu", "unknown target kind 'tpu'"),
        ("", "unknown target kind ''"),
        ("cpu -mcpu=znver9", "did you mean 'znver"),
        ("cpu -num-cores=0", "bad number of cores '0'"),
        ("cpu -num-cores=99999", "expected 1 to 1024"),
        ("cpu fast", "unknown option 'fast'"),
    ],
)
def test_a_target_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        Target(text)


def test_equal_targets_are_equal_however_they_are_written() -> None:
    target = CpuTarget("cpu -num-cores=2 -mcpu=znver3")
    assert target == Target("llvm -num-cores=2 -mcpu=znver3")
    assert target == Target("cpu -mcpu=znver3 -num-cores=2")
    assert Target(target.name) == target
    assert Target("cpu -mcpu=native") == Target()
    assert target.vector_bits == 256
    assert target.num_vector_registers == 16
    assert target.label == "cpu/znver3"


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


def test_a_kernel_for_an_unknown_target_is_not_loaded(matmul: Module) -> None:
    artifact = Artifact.from_bytes(with_meta(matmul.artifact, target="cpu -mcpu=nothing"))
    with pytest.raises(ArtifactError, match="unknown CPU 'nothing'"):
        Module(artifact)


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
