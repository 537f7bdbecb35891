"""Traces that are alike are checked by their decisions alone, and judged as if read in full."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace import Trace
from service.records.traces import TraceChecker
from tests.integration.service.tuned import some_candidates, task_of
from tuner.space.generate import design_space

TRACES = [
    json.dumps(candidate.trace.to_json())
    for candidate in some_candidates(design_space(task_of("matmul:16,8,8")), 8)
]
CHECKER = TraceChecker()

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(2**60),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-2, 4), max_size=3),
    st.dictionaries(st.sampled_from(["rv", "decision"]), st.integers(0, 2), max_size=1),
)


def verdict(check: Any, trace: Any) -> str | None:
    try:
        check(trace)
    except TraceError as error:
        return str(error)
    return None


@settings(max_examples=200)
@given(data=st.data())
def test_the_verdict_is_that_of_reading_the_whole_trace(data: st.DataObject) -> None:
    trace = json.loads(data.draw(st.sampled_from(TRACES)))
    CHECKER.check(deepcopy(trace))  # it knows the form
    entry = trace["instructions"][data.draw(st.integers(0, len(trace["instructions"]) - 1))]
    where = data.draw(st.sampled_from([entry, entry["arguments"], trace]))
    name = data.draw(st.sampled_from([*where, "decision"]))
    if data.draw(st.booleans()):
        where[name] = data.draw(junk)
    else:
        where.pop(name, None)
    expected = verdict(Trace.from_json, trace)
    for _ in range(2):
        assert verdict(CHECKER.check, trace) == expected


@pytest.mark.parametrize("size", [1, 300])
def test_many_forms_are_forgotten_and_checked_again(size: int) -> None:
    checker = TraceChecker()
    for number in range(size):
        name = {"name": "get_sblock", "arguments": {"name": f"b{number}"}, "outputs": ["b0"]}
        checker.check({"format": 2, "instructions": [name]})
    with pytest.raises(TraceError, match="decides nothing"):
        checker.check({"format": 2, "instructions": [{**name, "decision": 1}]})
