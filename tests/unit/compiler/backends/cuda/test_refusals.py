"""Users get a typed error before a device is touched, and may pass arrays of any library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import loopwright as lw
from compiler.backends.backend import host_targets
from compiler.backends.cuda import nvrtc
from compiler.backends.cuda.check_launches import check_launches
from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.emulated_call import EmulationError
from compiler.backends.error import BuildError
from compiler.driver import build, compile_kernel, toolchain
from compiler.executor.error import ArtifactError
from compiler.ir.core.nodes import Evaluate, IntImm, Var
from compiler.passes.device.kernel import Axis, DeviceKernel, DeviceProgram, Launch
from compiler.target.emulated import EMULATED_GPUS
from compiler.target.error import TargetError
from compiler.target.gpus import ARCHS
from loopwright.cli.main import app
from loopwright.cli.shared.failure import ExitCode

EMULATED = "cuda -gpu=h200 -emulated"
ADD = lw.ops.add(256)


def one_kernel(axis: str, extent: int, shared_bytes: int = 0) -> DeviceProgram:
    axes = (Axis(axis, Var("i"), extent),)
    kernel = DeviceKernel("k", axes, (), frozenset(), (), Evaluate(IntImm(0)), {}, shared_bytes)
    return DeviceProgram((), (), (kernel,), (Launch("k"),))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (one_kernel("threadIdx.x", 2048), "2,048 threads a block: sm_86 has 1,024"),
        (one_kernel("threadIdx.z", 128), "128 threads along z: sm_86 has 64"),
        (one_kernel("blockIdx.y", 70_000), "70,000 blocks along y: sm_86 has 65,535"),
        (
            one_kernel("threadIdx.x", 32, 100 << 10),
            "102,400 bytes of shared memory a block: sm_86 has 101,376",
        ),
    ],
)
def test_a_launch_beyond_a_limit_is_refused(program: DeviceProgram, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        check_launches(program, ARCHS["sm_86"], "sm_86")


def test_a_launch_at_its_limits_is_accepted() -> None:
    check_launches(one_kernel("threadIdx.x", 1024, 99 << 10), ARCHS["sm_86"], "sm_86")


def test_a_kernel_for_a_gpu_that_is_missing_is_built_but_not_loaded() -> None:
    artifact = compile_kernel(ADD, "cuda -gpu=h200")
    assert artifact.target == "cuda -arch=sm_90a -gpu=h200"
    with pytest.raises(ArtifactError, match=r"-emulated.*lw\.inspect"):
        lw.Module(artifact)


def test_damaged_code_is_refused() -> None:
    artifact = compile_kernel(ADD, EMULATED)
    with pytest.raises(ArtifactError, match="damaged"):
        lw.Module(replace(artifact, code=artifact.code[:-1]))


@pytest.fixture
def no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(nvrtc, "_wheel_folder", lambda: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: "libnvrtc-of-no-host.so")
    cached_functions = (nvrtc._library, nvrtc.nvrtc_release)
    for cached in cached_functions:
        cached.cache_clear()
    yield
    for cached in cached_functions:
        cached.cache_clear()


@pytest.mark.usefixtures("no_nvrtc")
def test_without_nvrtc_the_error_says_what_to_install() -> None:
    assert toolchain("cuda").endswith(", no NVRTC")
    with pytest.raises(BuildError, match=r"pip install 'loopwright\[cuda\]'"):
        build(ADD, EMULATED)


@pytest.mark.usefixtures("no_nvrtc")
def test_without_nvrtc_no_search_and_no_worker_for_an_emulated_gpu_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(EMULATED_GPUS, "")
    with pytest.raises(TargetError, match=r"pip install 'loopwright\[cuda\]'.*GPUs here: none"):
        lw.tune(ADD, target=EMULATED, max_trials=4)
    refused = CliRunner().invoke(app, ["worker", "tls://127.0.0.1:1", "--emulate", "h200"])
    assert refused.exit_code == ExitCode.NO_RESULT
    assert "pip install 'loopwright[cuda]'" in refused.output.replace("\n", " ")


def test_a_search_for_a_gpu_that_this_host_lacks_is_refused_before_the_first_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(EMULATED_GPUS, "a100")
    message = r"this host has no GPU.*-emulated.*GPUs here: cuda/a100-emulated"
    with pytest.raises(TargetError, match=message):
        lw.tune(ADD, target="cuda -gpu=h200", max_trials=4)


class ForeignArray:
    """An array of another library, which shares its memory by DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_a_kernel_runs_on_arrays_of_other_libraries() -> None:
    a, b = np.arange(256, dtype=np.float32), np.ones(256, np.float32)
    result = np.empty(256, np.float32)
    build(ADD, EMULATED)(ForeignArray(a), b, ForeignArray(result))
    np.testing.assert_array_equal(result, a + 1)


def test_a_fault_of_a_kernel_is_an_error_with_its_report() -> None:
    artifact = compile_kernel(ADD, EMULATED)
    code = DeviceCode.from_bytes(artifact.code)
    (launch,) = code.plan.launches
    twice = replace(launch, grid=(2, 1, 1))
    changed = replace(code, plan=replace(code.plan, launches=(twice,)))
    module = lw.Module(replace(artifact, code=changed.to_bytes()))
    with pytest.raises(EmulationError, match="race: several threads write one element") as refusal:
        module(*(np.zeros(256, np.float32) for _ in range(3)))
    assert refusal.value.report.faults


def test_the_host_offers_the_gpus_that_it_emulates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_EMULATED_GPUS", "h200, a100")
    labels = [target.label for target in host_targets()]
    assert labels[1:] == ["cuda/h200-emulated", "cuda/a100-emulated"]


def test_sources_of_a_kernel_are_cuda_and_ptx() -> None:
    module = build(ADD, EMULATED)
    assert "__global__ void" in module.get_source("cu") == module.get_source()
    assert ".visible .entry" in module.get_source("ptx")
    with pytest.raises(ValueError, match='expected "cu" or "ptx"'):
        module.get_source("asm")


def test_time_is_an_estimate() -> None:
    module = build(lw.ops.add(1 << 12), EMULATED)
    arrays = [np.zeros(1 << 12, np.float32) for _ in range(3)]
    first, second = (module.time_evaluator()(*arrays).mean for _ in range(2))
    assert first == second
    assert 0 < first < 1e-3
