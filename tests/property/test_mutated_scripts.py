"""A few of the mutated scripts of `make fuzz-scripts`, the same each time, and what they found."""

from __future__ import annotations

import pytest

from tests.property.fuzz_scripts import run_scripts, take_in
from tests.property.fuzzing import MAX_GROWTH_BYTES

# Smaller forms of mutated scripts that once ended in an internal error.
FOUND = {
    "a buffer in brackets without dimensions": """
@T.prim_func
def main(A: T.Buffer[()]):
    A[()] = T.float32(1)
""",
    "an index outside of a buffer where no condition holds": """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("b"):
        x: T.int32 = T.min(3, 9)
        if x < 3:
            A[11] = A[0]
            A[-5] = A[0]
""",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND.keys())
def test_what_mutation_found_stays_repaired(text: str) -> None:
    assert take_in(text) in ("accepted", "refused")


def test_a_mutated_script_is_accepted_or_refused_with_a_place() -> None:
    found = run_scripts(0, range(150))
    assert found.failures == []
    assert found.outcomes["accepted"] > 0
    assert found.outcomes["refused"] > 0
    assert found.growth_bytes < MAX_GROWTH_BYTES
