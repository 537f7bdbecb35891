"""The backend of GPUs keeps the contract of backends on an emulated GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler import ops
from compiler.backends.backend import BACKENDS, Backend
from compiler.backends.module import Module
from compiler.driver import build
from compiler.executor.error import ArtifactError
from compiler.target.target import Target
from tests.contracts.backend import BackendContract

H200 = "cuda -gpu=h200 -emulated"


class TestEmulatedGpu(BackendContract):
    def backend(self) -> Backend:
        return BACKENDS.find("cuda")

    def target(self) -> Target:
        return Target(H200)


@pytest.mark.parametrize("position", [b"2", b"-1"])
def test_code_that_uses_arrays_which_a_call_lacks_is_refused(position: bytes) -> None:
    artifact = build(ops.relu(8), H200).artifact
    code = artifact.code.replace(b"[0, 1]", b"[0," + position.rjust(2) + b"]")
    assert len(code) == len(artifact.code)
    with pytest.raises(ArtifactError, match=r"takes the arrays \[0, -?\d\] of 2"):
        Module(replace(artifact, code=code))
