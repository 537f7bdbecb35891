"""A few of the mutated requests of `make fuzz-requests`, the same ones each time."""

from __future__ import annotations

import pytest

from tests.fuzz_requests.fuzz import run

NUM_REQUESTS = 400


@pytest.mark.slow
def test_no_mutated_request_is_an_error_of_the_server() -> None:
    outcome = run(1, range(NUM_REQUESTS))
    assert outcome.failures == []
    assert outcome.statuses.total() == NUM_REQUESTS
    # They reach the routes, and they are wrong in many ways.
    assert {"200", "400", "401", "404", "405", "422"} <= set(outcome.statuses)
