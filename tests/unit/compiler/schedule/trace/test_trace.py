"""Traces: JSON out and in, replay, decisions, and what is refused of strangers' JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu


def tiled() -> Schedule:
    """Return a schedule that uses every form of argument."""
    sch = Schedule(matmul_relu(), seed=3)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, sch.sample_perfect_tile(i, 2, max_innermost_factor=8))
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(i_0, j_0, i_1, k, j_1)
    sch.reverse_compute_at("C", j_0, preserve_unit_loops=True)
    sch.annotate(block, "unroll", sch.sample_categorical([0, 16, 64], [0.2, 0.3, 0.5]))
    sch.annotate(block, "note", ["a", 1, 2.5, True])
    sch.parallel(sch.fuse(i_0, j_0))
    sch.cache_read(block, 0, "local", consumer_blocks=[block])
    sch.vectorize(j_1)
    sch.decompose_reduction(block, k)
    return sch


def test_a_trace_survives_json_and_replays_the_same_program() -> None:
    sch = tiled()
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert trace == sch.trace
    assert trace.key() == sch.trace.key()
    again = trace.apply_to(matmul_relu())
    assert structural_equal(again.func, sch.func)
    assert again.trace == sch.trace


def test_the_printed_trace_is_python_that_does_the_same() -> None:
    sch = tiled()
    other = Schedule(matmul_relu())
    exec(sch.trace.python(), {"sch": other})
    assert structural_equal(other.func, sch.func)
    assert other.trace == sch.trace


def test_show_prints_the_trace_and_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    sch = tiled()
    sch.trace.show()
    assert "sch.reorder(" in capsys.readouterr().out
    sch.show()
    assert "def main(" in capsys.readouterr().out


def test_decisions_can_be_replaced() -> None:
    trace = tiled().trace.with_decisions([[4, 4], 2])
    assert trace.decisions == ((4, 4), 2)
    replayed = trace.apply_to(matmul_relu())
    assert replayed.trace.decisions == ((4, 4), 2)
    assert trace.key() != tiled().trace.key()
    overridden = tiled().trace.apply_to(matmul_relu(), decisions=[(4, 4), 2])
    assert structural_equal(overridden.func, replayed.func)


def test_decisions_can_be_drawn_anew() -> None:
    trace = tiled().trace.with_decisions([[16, 1], 0])
    drawn = {
        trace.apply_to(matmul_relu(), [None, 0], seed=seed).trace.decisions for seed in range(20)
    }
    assert len(drawn) > 1
    assert all(i_0 * i_1 == 16 and i_1 <= 8 for (i_0, i_1), _ in drawn)  # type: ignore[misc]


def test_the_same_seed_draws_the_same() -> None:
    assert tiled().trace == tiled().trace


@pytest.mark.parametrize("decisions", [[], [[4, 4]], [[4, 4], 0, 1], [[4, 4], 3], [[4], 1], [4, 4]])
def test_wrong_decisions_are_refused(decisions: list[Any]) -> None:
    with pytest.raises(TraceError, match="decisions"):
        tiled().trace.with_decisions(decisions)


def test_replay_refuses_too_few_decisions() -> None:
    with pytest.raises(TraceError, match="expected 2 decisions, got 1"):
        tiled().trace.apply_to(matmul_relu(), decisions=[(4, 4)])


def test_simplification_drops_what_gives_nothing_used() -> None:
    sch = Schedule(elementwise())
    sch.get_loops("C")
    i, _ = sch.get_loops("B")
    sch.sample_perfect_tile(i, 2)
    sch.parallel(i)
    assert [x.name for x in sch.trace.simplified().instructions] == [
        "get_sblock",
        "get_loops",
        "parallel",
    ]


def test_a_trace_is_refused_where_the_program_does_not_fit() -> None:
    with pytest.raises(ScheduleError, match='there is no block "Y"'):
        tiled().trace.apply_to(elementwise())
    sch = Schedule(elementwise())
    sch.get_loops("B")
    text = json.dumps(sch.trace.to_json()).replace('"B"', '"Y"')
    trace = Trace.from_json(json.loads(text))
    with pytest.raises(ScheduleError, match="the trace expects 2 handles, the program gives 3"):
        trace.apply_to(matmul_relu())


def test_every_instruction_is_a_method() -> None:
    for name in INSTRUCTION_KINDS:
        assert callable(getattr(Schedule, name))


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
