"""The error function inside of gelu."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler import ops
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import errors
from tests.unit.compiler.backends.cpu.codegen.programs import run


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_off_by_less_than_its_argument_could_be(approximate: str) -> None:
    x = np.linspace(-12, 12, 40001).astype(np.float32)
    wide = x.astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    exact = {
        "none": np.array([v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in wide]),
        "tanh": wide / 2 * (1 + np.tanh(inner)),
    }[approximate]
    got = run(ops.gelu(len(x), approximate=approximate), x)
    assert (np.abs(got - exact) / np.spacing(np.abs(x))).max() < 1.7
    above = x >= 0
    assert errors(got[above], exact[above]).max() < 2
