"""An SQLite database is whole after a power loss, and its job goes on from what is on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.chaos import power_loss, shim


def test_a_job_goes_on_after_a_power_loss(tmp_path: Path) -> None:
    if shim.find_compiler() is None:
        pytest.skip("cc is not installed")
    left = power_loss.run(tmp_path, seed=1, num_trials=160)
    assert max(left) > 0
