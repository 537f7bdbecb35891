"""Backends keep their contract: that of CPUs, and the toy of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compiler.backends.backend import BACKENDS, Backend, host_labels, host_targets
from compiler.target.target import Target
from tests.contracts.backend import BackendContract
from tests.targets import here
from tests.toy_backend.toy import ToyBackend, ToyTarget, registered


class TestCpu(BackendContract):
    def backend(self) -> Backend:
        return BACKENDS.find("cpu")

    def target(self) -> Target:
        return here()


class TestToy(BackendContract):
    @pytest.fixture(autouse=True)
    def toy(self) -> Iterator[None]:
        with registered():
            yield

    def backend(self) -> Backend:
        return ToyBackend()

    def target(self) -> Target:
        return ToyTarget("toy")


def test_the_cpu_is_the_first_target_of_a_host() -> None:
    with registered():
        assert [target.kind for target in host_targets()] == ["cpu", "toy"]
        assert host_labels()[1] == "toy/evaluator"
