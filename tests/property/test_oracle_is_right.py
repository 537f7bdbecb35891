"""The oracle against plain evaluation: random programs, and random schedules of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.ir.core.nodes import (
    Call,
    For,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.ir.interpret.oracle.oracle_plan import OraclePlan
from tests.property.check_schedule import numbered
from tests.property.fuzz import Counts, make_pair
from tests.property.generators.odd_programs import odd_program


def agree(func: PrimFunc) -> None:
    inputs = random_inputs(func, 0)
    computed = interpret(func, inputs)
    with patch.object(OraclePlan, "is_scalar", lambda *_: False):
        as_arrays = interpret(func, inputs)
    for name, array in as_arrays.items():
        same = np.isnan(array) & np.isnan(computed[name]) if array.dtype.kind == "f" else False
        np.testing.assert_allclose(
            np.where(same, 0, array).astype(float),
            np.where(same, 0, computed[name]).astype(float),
            rtol=1e-5,
            atol=1e-5,
        )
    assert tuple(computed) == param_roles(func).outputs
    plain = evaluate(func, inputs)
    for name, array in computed.items():
        # What is read before it was written has no value to agree on.
        if np.issubdtype(array.dtype, np.floating):
            array[np.isnan(plain[name])] = 0
            plain[name] = np.nan_to_num(plain[name])
    assert compare(func, plain, computed) < 1e-3


def is_sequential(func: PrimFunc) -> bool:
    """Tell whether a program has no threads: the oracle runs them one after another."""
    return not any(
        (isinstance(node, For) and node.thread is not None)
        or (isinstance(node, Call) and node.name in ("tvm_storage_sync", "undef"))
        for node in walk(func.body)
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_odd_programs(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    func = odd_program(choose)
    if func is not None:
        agree(func)


@pytest.mark.parametrize("number", range(120))
def test_scheduled_programs(number: int) -> None:
    _, schedule = make_pair(3, number, Counts())
    func = numbered(schedule.func)
    if is_sequential(func):
        agree(func)
