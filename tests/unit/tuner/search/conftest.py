"""The design space of a matrix product."""

from __future__ import annotations

import pytest

from compiler import ops
from tests.contracts.search_strategy import (
    TARGET,
)
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task


@pytest.fixture
def space() -> SketchSpace:
    return design_space(Task(ops.matmul(128, 128, 128), TARGET))
