"""The error budget of a program: how much error its schedules may add by rounding.

The attribute `error_budget` has it, as a share of the largest magnitude of an output. It is part of
the structural hash: a program with another budget is another workload.
"""

from __future__ import annotations

import math

from compiler.ir.core.program import PrimFunc

ERROR_BUDGET = "error_budget"


def declared_budget(func: PrimFunc) -> float:
    """Return the error budget of a verified program; infinity if it has none."""
    value = dict(func.attrs).get(ERROR_BUDGET)
    return float(value) if isinstance(value, int | float) else math.inf


def budget_problem(func: PrimFunc) -> str | None:
    """Return what is wrong with the attribute of a program; None if it is correct."""
    value = dict(func.attrs).get(ERROR_BUDGET, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        return f"{ERROR_BUDGET} is {value!r}: expected a number from 0 to 1"
    return None
