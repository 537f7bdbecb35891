"""Traces that are alike are read by their decisions alone, as if they were read in full."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace import Trace
from compiler.schedule.trace.trace_reader import TraceReader
from tests.integration.service.tuned import some_candidates, task_of
from tuner.space.generate import design_space

TRACES = [
    json.dumps(candidate.trace.to_json())
    for candidate in some_candidates(design_space(task_of("matmul:16,8,8")), 8)
]
READER = TraceReader()

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


def found(read: Any, trace: Any) -> Trace | str:
    try:
        trace = read(trace)
    except TraceError as error:
        return str(error)
    assert isinstance(trace, Trace)
    return trace


@settings(max_examples=200)
@given(data=st.data())
def test_the_trace_or_its_error_is_that_of_reading_all_of_it(data: st.DataObject) -> None:
    trace = json.loads(data.draw(st.sampled_from(TRACES)))
    READER.read(deepcopy(trace))  # it knows the form
    READER.read_text(json.dumps(trace))
    entry = trace["instructions"][data.draw(st.integers(0, len(trace["instructions"]) - 1))]
    where = data.draw(st.sampled_from([entry, entry["arguments"], trace]))
    name = data.draw(st.sampled_from([*where, "decision"]))
    if data.draw(st.booleans()):
        where[name] = data.draw(junk)
    else:
        where.pop(name, None)
    expected = found(Trace.from_json, trace)
    for _ in range(2):
        assert found(READER.read, trace) == expected
        for separators in ((",", ":"), (", ", ": ")):
            text = json.dumps(trace, separators=separators)
            assert found(READER.read_text, text) == found(Trace.from_json, json.loads(text))


@pytest.mark.parametrize("size", [1, 300])
def test_many_forms_are_forgotten_and_read_again(size: int) -> None:
    reader = TraceReader()
    for number in range(size):
        name = {"name": "get_sblock", "arguments": {"name": f"b{number}"}, "outputs": ["b0"]}
        reader.read({"format": 2, "instructions": [name]})
    with pytest.raises(TraceError, match="decides nothing"):
        reader.read({"format": 2, "instructions": [{**name, "decision": 1}]})


def test_traces_of_a_form_have_the_keys_of_their_own_decisions() -> None:
    reader = TraceReader()
    traces = [Trace.from_json(json.loads(text)) for text in TRACES]
    assert [reader.read(json.loads(text)).key() for text in TRACES] == [t.key() for t in traces]
    assert [reader.read_text(text).key() for text in TRACES] == [t.key() for t in traces]
    assert len({trace.key() for trace in traces}) == len(TRACES)


def test_the_text_of_a_decision_in_a_string_is_no_decision() -> None:
    reader = TraceReader()
    for name in (',"decision":[1]', ', "decision": 2'):
        entry = {"name": "get_sblock", "arguments": {"name": name}, "outputs": ["b0"]}
        trace = {"format": 2, "instructions": [entry]}
        assert reader.read_text(json.dumps(trace)) == Trace.from_json(trace)
