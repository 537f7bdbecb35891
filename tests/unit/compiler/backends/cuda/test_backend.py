"""The backend of GPUs keeps the contract of backends on an emulated GPU."""

from __future__ import annotations

from compiler.backends.backend import BACKENDS, Backend
from compiler.target.target import Target
from tests.contracts.backend import BackendContract

H200 = "cuda -gpu=h200 -emulated"


class TestEmulatedGpu(BackendContract):
    def backend(self) -> Backend:
        return BACKENDS.find("cuda")

    def target(self) -> Target:
        return Target(H200)
