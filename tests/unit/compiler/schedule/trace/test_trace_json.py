"""Traces as JSON: what is refused, with its place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.trace.tiled import tiled

Mutation = Callable[[dict[str, Any]], object]


def instruction(number: int) -> Callable[[dict[str, Any]], Any]:
    return lambda obj: obj["instructions"][number]


MALFORMED: list[tuple[str, Mutation]] = [
    ("format: expected version 1 to 2, got 3", lambda o: o.update(format=3)),
    ("format: expected version 1 to 2, got True", lambda o: o.update(format=True)),
    ("trace: lacks format", lambda o: o.pop("format")),
    ("trace: has unknown fields: 'extra'", lambda o: o.update(extra=1)),
    ("instructions: expected a list, got dict", lambda o: o.update(instructions={})),
    ("instructions: 20000 instructions are more", lambda o: o.update(instructions=[0] * 20000)),
    ("instructions[0]: expected an object, got 1", lambda o: o["instructions"].insert(0, 1)),
    ("instructions[0].name: 'exec' is no", lambda o: instruction(0)(o).update(name="exec")),
    ("instructions[0].name: list is no", lambda o: instruction(0)(o).update(name=[])),
    ("instructions[0].arguments: lacks name", lambda o: instruction(0)(o).update(arguments={})),
    (
        "instructions[0].arguments.name: expected a string, got 3",
        lambda o: instruction(0)(o).update(arguments={"name": 3}),
    ),
    ("instructions[0].outputs: get_sblock gives 1", lambda o: instruction(0)(o).pop("outputs")),
    (
        "instructions[0].outputs[0]: expected a name such as b0, got 'l0'",
        lambda o: instruction(0)(o).update(outputs=["l0"]),
    ),
    (
        "instructions[1].arguments.block: no instruction before this one gives b7",
        lambda o: instruction(1)(o).update(arguments={"block": "b7"}),
    ),
    (
        "instructions[1].outputs[1]: l1 is given twice",
        lambda o: instruction(1)(o).update(outputs=["l1", "l1", "l3"]),
    ),
    (
        "instructions[0].decision: get_sblock decides nothing",
        lambda o: instruction(0)(o).update(decision=1),
    ),
    (
        "instructions[2].decision: expected 2 positive integers, got list",
        lambda o: instruction(2)(o).update(decision=[4, True]),
    ),
    (
        "instructions[2].decision: expected 2 positive integers, got None",
        lambda o: instruction(2)(o).pop("decision"),
    ),
    (
        "instructions[2].arguments.n: expected a positive integer, got 0",
        lambda o: instruction(2)(o)["arguments"].update(n=0),
    ),
    (
        "instructions[3].arguments.factors: expected 1 to 256 items, got 0",
        lambda o: instruction(3)(o)["arguments"].update(factors=[]),
    ),
    (
        "instructions[3].arguments.factors[0]: expected an integer, null or a value handle",
        lambda o: instruction(3)(o)["arguments"].update(factors=["l1", 2]),
    ),
    (
        "instructions[3].outputs: split gives 2 handles, got 1",
        lambda o: instruction(3)(o).update(outputs=["l9"]),
    ),
    (
        "probs: 2 probabilities for 3 candidates",
        lambda o: _named(o, "sample_categorical")["arguments"].update(probs=[0.5, 0.5]),
    ),
    (
        "probs[0]: expected a probability, got nan",
        lambda o: _named(o, "sample_categorical")["arguments"].update(probs=[float("nan"), 1, 1]),
    ),
    (
        "probs: expected a probability above zero",
        lambda o: _named(o, "sample_categorical")["arguments"].update(probs=[0, 0, 0]),
    ),
    (
        "decision: expected an index of 3 candidates, got 3",
        lambda o: _named(o, "sample_categorical").update(decision=3),
    ),
    (
        "ann_val: lacks rv",
        lambda o: _named(o, "annotate")["arguments"].update(ann_val={}),
    ),
    (
        "preserve_unit_loops: expected true or false, got 1",
        lambda o: _named(o, "reverse_compute_at")["arguments"].update(preserve_unit_loops=1),
    ),
    (
        "read_buffer_index: expected an integer, got 0.5",
        lambda o: _named(o, "cache_read")["arguments"].update(read_buffer_index=0.5),
    ),
]


def _named(obj: dict[str, Any], name: str) -> Any:
    return next(entry for entry in obj["instructions"] if entry["name"] == name)


@pytest.mark.parametrize(("message", "mutate"), MALFORMED, ids=[m for m, _ in MALFORMED])
def test_malformed_json_is_refused_with_the_place(message: str, mutate: Mutation) -> None:
    obj = copy.deepcopy(tiled().trace.to_json())
    Trace.from_json(obj)
    mutate(obj)
    with pytest.raises(TraceError) as caught:
        Trace.from_json(obj)
    assert message in str(caught.value)


@pytest.mark.parametrize("obj", [None, 1, "x", [], [[]], {"format": 1}])
def test_what_is_no_trace_is_refused(obj: object) -> None:
    with pytest.raises(TraceError):
        Trace.from_json(obj)
