"""The GPUs that a host emulates."""

from __future__ import annotations

import os

import pytest

from compiler.target.emulated import EMULATED_GPUS, emulate_gpus, emulated_targets
from compiler.target.error import TargetError


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATED_GPUS, "")


def test_a_host_emulates_no_gpu_unless_it_is_set() -> None:
    assert emulated_targets() == []


def test_the_gpus_of_a_process_are_set_for_its_children_too() -> None:
    emulate_gpus(["h200", " a100"])
    assert [target.label for target in emulated_targets()] == [
        "cuda/h200-emulated",
        "cuda/a100-emulated",
    ]
    assert all(target.is_emulated for target in emulated_targets())
    assert os.environ[EMULATED_GPUS] == "h200,a100"


def test_an_unknown_gpu_is_refused_and_nothing_changes() -> None:
    emulate_gpus(["h200"])
    with pytest.raises(TargetError, match="did you mean 'h200'"):
        emulate_gpus(["a100", "h20"])
    with pytest.raises(TargetError, match="-gpu="):
        emulate_gpus([""])
    assert os.environ[EMULATED_GPUS] == "h200"


def test_a_variable_that_names_an_unknown_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATED_GPUS, "h200,voodoo")
    with pytest.raises(TargetError, match="unknown GPU 'voodoo'"):
        emulated_targets()
