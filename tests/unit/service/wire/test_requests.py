from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from service.wire.requests import JobCreate, Workload

OPERATOR = {"operator": "matmul:8,8,8"}


@pytest.mark.parametrize("fields", [{}, {"script": "x", "operator": "y"}, {"script": ""}])
def test_a_workload_has_one_form(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Workload(**fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_trials": 0},
        {"max_trials": 1_000_000},
        {"max_trials": "many"},
        {"seed": -1},
        {"seed": 2**31},
        {"strategy": "luck"},
        {"target": ""},
        {"trails": 3},
        {"workload": {"script": "x" * 300_000}},
    ],
)
def test_a_job_that_cannot_be_meant_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JobCreate.model_validate({"workload": OPERATOR, "max_trials": 8, **changes})


@pytest.mark.parametrize("earlier", [{"trials": 8}, {"max_secs": 5, "seconds": 5}])
def test_a_field_under_both_of_its_names_is_refused(earlier: dict[str, int]) -> None:
    body = {"workload": {"operator": "matmul:8,8,8"}, "max_trials": 8, **earlier}
    with pytest.raises(ValidationError, match="give one of them"):
        JobCreate.model_validate(body)
