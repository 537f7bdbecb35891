"""GPUs as targets."""

from __future__ import annotations

import pytest

from compiler.target.cuda import CudaTarget
from compiler.target.error import TargetError
from compiler.target.gpus import ARCHS, GPUS, WARP_SIZE


def test_a_gpu_says_its_architecture() -> None:
    target = CudaTarget("cuda -gpu=h200")
    assert target == CudaTarget("cuda -arch=sm_90a -gpu=h200")
    assert (target.kind, target.arch, target.label) == ("cuda", "sm_90a", "cuda/h200")
    assert CudaTarget(target.name) == target
    assert target.gpu is not None
    assert target.gpu.num_sms == 132
    assert target.limits.shared_bytes == 232_448


def test_an_architecture_alone_has_no_model() -> None:
    target = CudaTarget("cuda -arch=sm_80")
    assert (target.gpu, target.label) == (None, "cuda/sm_80")


def test_an_emulated_gpu_is_another_target() -> None:
    target = CudaTarget("cuda -emulated -gpu=h200")
    assert target.name == "cuda -arch=sm_90a -gpu=h200 -emulated"
    assert CudaTarget(target.name) == target
    assert (target.is_emulated, target.label) == (True, "cuda/h200-emulated")
    assert target != CudaTarget("cuda -gpu=h200")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cuda",
            "names no GPU: expected -gpu=NAME, -arch=NAME or -emulated, such as",
        ),
        ("cuda -gpu=h20", "unknown GPU 'h20' in target 'cuda -gpu=h20': did you mean 'h200'"),
        ("cuda -arch=sm_99", "unknown architecture 'sm_99'"),
        ("cuda -gpu=a100 -arch=sm_90a", "a100 has the architecture sm_80, not sm_90a"),
        ("cuda -num-cores=1", "unknown option '-num-cores=1'"),
        ("cpu", "begins with 'cuda'"),
    ],
)
def test_a_target_that_names_no_gpu_is_refused(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        CudaTarget(text)


@pytest.mark.parametrize("name", sorted(GPUS))
def test_each_gpu_fits_its_architecture(name: str) -> None:
    gpu = GPUS[name]
    limits = ARCHS[gpu.arch]
    assert limits.static_shared_bytes < limits.shared_bytes < limits.shared_bytes_of_sm
    assert limits.max_threads <= limits.max_warps * WARP_SIZE
    assert gpu.peaks["float32"] < gpu.peaks["tf32"] < gpu.peaks["bfloat16"]
    assert 1e11 < gpu.memory_rate < 1e13


@pytest.mark.parametrize(
    ("text", "labels", "completed"),
    [
        ("cuda", ["cpu/znver4", "cuda/h200"], "cuda -gpu=h200"),
        ("cuda", ["cuda/h200", "cuda/a100-emulated"], "cuda -gpu=h200"),
        ("cuda -emulated", ["cuda/h200", "cuda/a100-emulated"], "cuda -gpu=a100 -emulated"),
        ("cuda -gpu=a100", ["cuda/h200"], "cuda -gpu=a100"),
        ("cuda -arch=sm_80", [], "cuda -arch=sm_80"),
    ],
)
def test_a_gpu_that_is_not_named_is_the_only_one(
    text: str, labels: list[str], completed: str
) -> None:
    assert CudaTarget.complete(text, lambda: labels) == completed


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("cuda", ["cpu/znver4"], "no GPU is available here; known GPUs: a100, b200, h100-pcie"),
        ("cuda", ["cuda/h200", "cuda/a100"], "one of these: 'cuda -gpu=a100' or 'cuda -gpu=h200'"),
        # An estimate is not a measurement: it has to be named.
        ("cuda", ["cuda/h200-emulated"], "name one of these: 'cuda -gpu=h200 -emulated'"),
        ("cuda -emulated", ["cuda/h200"], "name one of these: 'cuda -gpu=h200'"),
    ],
)
def test_a_gpu_that_is_not_named_and_not_the_only_one_is_refused(
    text: str, labels: list[str], message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        CudaTarget.complete(text, lambda: labels)
