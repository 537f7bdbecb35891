"""The code of artifacts for GPUs: bytes that are read back, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.backends.cuda.device_code import DeviceCode, KernelLaunch, LaunchPlan, TensorArgument
from compiler.executor.error import ArtifactError
from compiler.executor.params import Param
from compiler.runtime.resources import KernelResources

PLAN = LaunchPlan(
    (
        KernelLaunch("fill", (4, 1, 1), (32, 1, 1), 0, (0, 2), (("int32", 7), ("int64", -1))),
        KernelLaunch(
            "total",
            (1, 2, 1),
            (64, 2, 1),
            4096,
            (2, 1),
            tensors=(TensorArgument(0, "bfloat16", (4, 96), (4, 64)),),
        ),
    ),
    (Param("sums", (4, 8), "float32", is_output=False),),
)
CODE = DeviceCode(PLAN, b"\x7fELF\0\1", ".version 9.0\n", {"fill": KernelResources(8, 0, 0, 0)})


def test_code_survives_its_bytes() -> None:
    assert DeviceCode.from_bytes(CODE.to_bytes()) == CODE
    assert CODE.plan.workspace_bytes == 4 * 8 * 4


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x7fELF",
        CODE.to_bytes()[:-1],
        CODE.to_bytes() + b"\0",
        CODE.to_bytes()[:8] + b"\xff\xff\xff\xff",
        CODE.to_bytes().replace(b'"launches"', b'"lunches!"'),
        CODE.to_bytes().replace(b'"box": [4, 64]', b'"box": [4, ""]'),
        CODE.to_bytes().replace(b'"grid": [4, 1, 1]', b'"grid": [4, 1, ""]'),
    ],
)
def test_damaged_code_is_refused(damaged: bytes) -> None:
    with pytest.raises(ArtifactError):
        DeviceCode.from_bytes(damaged)


def test_another_version_is_refused() -> None:
    content = CODE.to_bytes().replace(b"LWGPU002", b"LWGPU003")
    with pytest.raises(ArtifactError, match="format 2"):
        DeviceCode.from_bytes(content)


def test_equal_code_gives_equal_bytes() -> None:
    resources = {name: KernelResources(8, 0, 0, 0) for name in ("b", "a")}
    backwards = dict(reversed(resources.items()))
    assert (
        replace(CODE, resources=resources).to_bytes()
        == replace(CODE, resources=backwards).to_bytes()
    )
