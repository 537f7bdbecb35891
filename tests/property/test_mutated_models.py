"""A few of the mutated models of `make fuzz-models`, the same each time."""

from tests.property.fuzz_models import run_models
from tests.property.fuzzing import MAX_GROWTH_BYTES


def test_a_mutated_model_is_read_or_refused_with_a_reason() -> None:
    found = run_models(0, range(1000))
    assert found.failures == []
    assert found.outcomes["accepted"] > 0
    assert found.outcomes["refused"] > 0
    assert found.growth_bytes < MAX_GROWTH_BYTES
