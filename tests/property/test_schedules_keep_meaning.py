"""Random programs under random legal traces compute what the unscheduled program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.schedule import Schedule
from tests.property.acceptance import Acceptance
from tests.property.check_schedule import Meaning
from tests.property.fuzz import SUITED, explain, run_in_parallel, shrink
from tests.property.generators.choice import STEPS
from tests.property.generators.odd_programs import odd_program
from tests.property.generators.schedules import (
    PRIMITIVES,
    RandomTrace,
    may_be_unbuilt,
    reverse_concurrent_loops,
)
from tests.property.generators.workloads import WORKLOADS

# Each workload has three turns: all steps of one may be refused. `make fuzz` tries thousands.
# Primitives with workloads of their own take turns beside these.
NUM_PAIRS = 3 * len(WORKLOADS) * len(STEPS) // (len(STEPS) - len(SUITED))
# What finds, shows, remembers or copies, and changes no program.
NOT_TRANSFORMATIONS = {
    "call_library",  # its tests compare it with NumPy; a call has no loops for other primitives
    "can_decompose_padding",
    "copy",
    "enter_postproc",
    "fork_seed",
    "func",
    "func_working_on",
    "get",
    "get_auto_tensorize_mapping_info",
    "get_block",
    "get_child_blocks",
    "get_consumers",
    "get_loop",
    "get_loops",
    "get_output_blocks",
    "get_producers",
    "get_sblock",
    "get_tensorize_loop_mapping",
    "is_output_block",
    "layouts",
    "mod",
    "remove_rv",
    "require_own_layouts",
    "seed",
    "show",
    "suggest_layout",
    "tile_with_tensor_intrin",  # a sequence of others
    "trace",
    "verified_once",
    "work_on",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_legal_trace_computes_what_the_program_computes() -> None:
    counts, failures = run_in_parallel(seed=1, numbers=range(NUM_PAIRS))
    assert not failures, "\n".join(explain(shrink(failure)) for failure in failures[:2])

    # What is refused shows nothing: most must be accepted, and each primitive now and then, on each
    # workload.
    assert counts.acceptance >= 0.6
    assert counts.unbuilt <= 0.05 * NUM_PAIRS
    for name in WORKLOADS:
        assert counts.scheduled[name] >= 2, f"{name}: too little is accepted"
    for name in STEPS:
        assert counts.accepted[name] >= 2, f"{name}: {counts.refused[name]} refused"


def test_every_primitive_has_its_turn() -> None:
    known = {name for name in dir(Schedule) if not name.startswith("_")}
    assert set(PRIMITIVES.values()) == known - NOT_TRANSFORMATIONS


odd_primitives = Acceptance()


@odd_primitives.at_least(0.3)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_odd_programs_keep_their_meaning_too(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    func = odd_program(choose)
    assume(func is not None)
    assert func is not None
    steps = RandomTrace(Schedule(func, seed=0), choose)
    meaning = Meaning(func)
    for _ in range(data.draw(st.integers(1, 8))):
        steps.step()
        meaning.hold_form(steps.schedule)
    for is_accepted, counts in ((True, steps.accepted), (False, steps.refused)):
        for _ in range(counts.total()):
            odd_primitives.count(is_accepted)
    rng = np.random.default_rng(1)
    inputs = {p.name: rng.integers(-3, 4, static_shape(p)).astype(p.dtype) for p in func.buffers}
    expected = evaluate(func, inputs)
    scheduled = steps.schedule.func
    results = [evaluate(scheduled, inputs), evaluate(reverse_concurrent_loops(scheduled), inputs)]
    arrays = {name: array.copy() for name, array in inputs.items()}
    try:
        build(scheduled, "cpu -num-cores=2")(*arrays.values())
        results.append(arrays)
    except BuildError:
        assert may_be_unbuilt(scheduled)
    for got in results:
        for name, value in expected.items():
            # What the program reads before it is written has no meaning to keep.
            same = np.isnan(value) | (value == got[name])
            assert same.all(), (name, value, got[name])
