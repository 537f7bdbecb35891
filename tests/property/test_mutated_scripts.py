"""A few of the mutated scripts that `make fuzz-scripts` sends through intake, the same each time."""

from __future__ import annotations

from tests.property.fuzz_scripts import MAX_GROWTH_BYTES, run_scripts


def test_a_mutated_script_is_accepted_or_refused_with_a_place() -> None:
    found = run_scripts(0, range(150))
    assert found.failures == []
    assert found.outcomes["accepted"] > 0
    assert found.outcomes["refused"] > 0
    assert found.growth_bytes < MAX_GROWTH_BYTES
