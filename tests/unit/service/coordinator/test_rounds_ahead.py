"""How many rounds a job begins ahead, by the workers that it may expect."""

from __future__ import annotations

import pytest

from service.coordinator.job_runner import rounds_ahead


@pytest.mark.parametrize(
    ("num_workers", "expected"),
    [(0.0, 1), (1.0, 1), (8.0, 1), (8.5, 2), (16.0, 2), (17.0, 3), (1000.0, 3)],
)
def test_two_batches_for_each_worker_are_ahead_up_to_a_limit(
    num_workers: float, expected: int
) -> None:
    assert rounds_ahead(num_workers) == expected
