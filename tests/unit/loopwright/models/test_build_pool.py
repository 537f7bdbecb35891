import sys

import pytest

from compiler import ops
from compiler.user_cache import default_directory
from loopwright.models import build_pool
from tests.targets import level
from tuner.replay import base_model
from tuner.task import Task

_TARGET = level(3)


@pytest.fixture(scope="module")
def cost_model() -> bytes:
    return base_model.base_model(default_directory()).model


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    extents = (8, 12, 16, 20)
    return {f"k{n}": Task(ops.matmul(n, 16, 16), _TARGET, 1.0) for n in extents}


def _texts(tasks: dict[str, Task], cost_model: bytes) -> dict[str, str]:
    kernels = build_pool.propose_kernels(tasks, cost_model, 0)
    return {name: kernel.built.kernel.text for name, kernel in kernels.items()}


def test_kernels_do_not_depend_on_the_number_of_processes(
    tasks: dict[str, Task], cost_model: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_pool, "available_cores", lambda: 1)
    alone = _texts(tasks, cost_model)
    monkeypatch.setattr(build_pool, "available_cores", lambda: 3)
    assert list(alone) == list(tasks)
    assert _texts(tasks, cost_model) == alone


def test_tasks_of_a_process_that_dies_are_built_here(
    tasks: dict[str, Task], cost_model: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_pool, "available_cores", lambda: 2)
    monkeypatch.setattr(sys, "executable", "false")
    assert list(_texts(tasks, cost_model)) == list(tasks)
