"""Error budgets of programs: the attribute, and what the verifier refuses of it."""

from __future__ import annotations

import math

import pytest

from compiler import ops
from compiler.ir.analysis.error_budget import ERROR_BUDGET, declared_budget
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.nodes import AnnotationValue
from compiler.ir.verify.verify import VerifyError, verify
from compiler.script.parser import parse

FUNC = ops.matmul(4, 8, 6)


def test_a_budget_is_part_of_the_workload_and_of_its_text() -> None:
    func = FUNC.with_attr(ERROR_BUDGET, 1e-6)
    verify(func)
    assert declared_budget(func) == 1e-6
    assert declared_budget(parse(func.script())) == 1e-6
    assert declared_budget(FUNC) == math.inf
    assert structural_hash(func) != structural_hash(FUNC)


@pytest.mark.parametrize("value", ["1e-6", True, -1e-6, 1.5, (1e-6,)])
def test_what_is_no_share_is_refused(value: AnnotationValue) -> None:
    with pytest.raises(VerifyError, match=r"error_budget is .*: expected a number from 0 to 1"):
        verify(FUNC.with_attr(ERROR_BUDGET, value))
