"""What decisions are called, and the numbers that they are stored as."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.text.printer import script
from compiler.ops.spec import from_spec
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from compiler.schedule.trace.instruction import Ref
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace_json import decided_numbers
from tests.targets import level
from tuner.space.generate import design_space
from tuner.space.tables.knob import TileKnob
from tuner.space.tables.labels import axis_labels, stored_labels
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

SPECS = (
    "matmul:24,32,20",
    "batch_matmul:3,8,16,4",
    "conv2d:1,16,14,14,16,3,1,1",
    "depthwise_conv2d:1,8,14,14,3,1,1",
    "softmax:12,40",
    "layer_norm:8,24",
    "transpose:24,18",
    "relu:64,256",
)


@cache
def sketches(spec: str, num_cores: int) -> tuple[Sketch, ...]:
    return design_space(Task(from_spec(spec), level(3, num_cores))).sketches


def test_a_tile_is_called_by_its_loop_and_a_choice_by_its_use() -> None:
    schedule = Schedule(from_spec("matmul:64,64,64"))
    i, j, k = schedule.get_loops("C")
    schedule.split(i, schedule.sample_perfect_tile(i, 2, decision=[8, 8]))
    width = schedule.sample_categorical([8, 16], [0.5, 0.5], decision=1)
    _, inner = schedule.split(j, [None, width])
    schedule.annotate(k, "reduce_in_lanes", schedule.sample_categorical([4], [1.0], decision=0))
    schedule.annotate(inner, "mine", schedule.sample_categorical([5], [1.0], decision=0))
    schedule.sample_categorical([7], [1.0], decision=0)
    func, trace = from_spec("matmul:64,64,64"), schedule.trace
    assert axis_labels(trace, func) == (
        *("i of C, part 1", "i of C, part 2", "j of C, part 2", "lanes of k of C"),
        *("mine of j of C, part 2", trace.instructions[-1].outputs[0]),
    )
    assert decided_numbers(trace.to_json()) == [8, 8, 16, 4, 5, 7]
    assert axis_labels(trace, None)[0] == "loop 1 of C, part 1"


def test_a_fused_loop_is_called_by_its_first_and_its_last_one() -> None:
    schedule = Schedule(from_spec("matmul:64,64,64"))
    i, j, _ = schedule.get_loops("C")
    rows = schedule.sample_categorical([8, 16], [0.5, 0.5], decision=1)
    schedule.split(schedule.fuse(i, j), [None, rows])
    assert axis_labels(schedule.trace, from_spec("matmul:64,64,64")) == ("i to j of C, part 2",)


def test_axes_of_one_name_are_numbered() -> None:
    schedule = Schedule(from_spec("matmul:64,64,64"))
    for _ in range(2):
        schedule.sample_perfect_tile(schedule.get_loops("C")[0], 2, decision=[8, 8])
    assert axis_labels(schedule.trace, from_spec("matmul:64,64,64")) == (
        *("i of C, part 1", "i of C, part 2", "i of C, part 1 (2)", "i of C, part 2 (2)"),
    )


@pytest.mark.parametrize(
    ("spec", "sketch", "labels"),
    [
        ("matmul:24,32,20", "packed_right_whole",
         "i of C, part 1|i of C, part 2|i of C, part 3|j of C, part 1|j of C, part 3"
         "|k of C, part 1|k of C, part 2"),
        ("softmax:12,40", "rows",
         "i0 of B, part 2|lanes of loop 3 of largest|unrolled steps of loop 3 of largest"
         "|loop 3 of powers, part 2"),
        ("transpose:24,18", "aside", "loop 2 of copy for B, part 2"),
    ],
)  # fmt: skip
def test_sketches_have_these_labels(spec: str, sketch: str, labels: str) -> None:
    (trace,) = (each.trace for each in sketches(spec, 1) if each.name == sketch)
    assert "|".join(axis_labels(trace, from_spec(spec))) == labels


@pytest.mark.parametrize(
    "spec", [s for s in SPECS if not s.startswith(("relu", "softmax", "layer"))]
)
def test_a_label_names_the_loop_that_a_replay_tiles(spec: str) -> None:
    num_tiles = 0
    for sketch in sketches(spec, 4):
        instructions = sketch.trace.instructions
        places = [n for n, instruction in enumerate(instructions) if instruction.spec.decides]
        for label, knob, place in zip(sketch.labels, sketch.knobs, places, strict=True):
            if isinstance(knob, TileKnob) and not label.startswith("loop "):
                handles = replay(instructions[:place], Schedule(from_spec(spec)))
                loop = dict(instructions[place].arguments)["loop"]
                assert isinstance(loop, Ref)
                handle = handles[loop.name]
                assert isinstance(handle, LoopRV)
                assert label.partition(" of ")[0] == handle.of
                num_tiles += 1
    assert num_tiles


@settings(max_examples=60, deadline=None)
@given(spec=st.sampled_from(SPECS), num_cores=st.sampled_from((1, 4)), data=st.data())
def test_the_numbers_of_a_trial_are_those_of_its_row(
    spec: str, num_cores: int, data: st.DataObject
) -> None:
    sketch = data.draw(st.sampled_from(sketches(spec, num_cores)))
    (row,) = sketch.draw(1, np.random.default_rng(data.draw(st.integers(0, 999)))).tolist()
    trace = sketch.candidate(row).trace
    expected: list[int] = []
    for knob, choice in zip(sketch.knobs, row, strict=True):
        numbers = knob.options[choice].tolist()
        # The number of the pieces of a cut is not decided, it follows from their length.
        expected += numbers if isinstance(knob, TileKnob) else numbers[-1:]
    assert decided_numbers(trace.to_json()) == expected
    labels = axis_labels(trace, from_spec(spec))
    assert labels == axis_labels(sketch.trace, from_spec(spec))
    assert len(labels) == len(set(labels)) == len(expected)


def test_what_an_earlier_version_stored_and_this_one_cannot_read_has_labels() -> None:
    func = from_spec("matmul:64,64,64")
    schedule = Schedule(func)
    schedule.sample_perfect_tile(schedule.get_loops("C")[0], 2, decision=[8, 8])
    trace = schedule.trace.to_json()
    assert stored_labels(trace, script(func)) == ["i of C, part 1", "i of C, part 2"]
    assert stored_labels(trace, "# no program") == ["loop 1 of C, part 1", "loop 1 of C, part 2"]
    instructions = trace["instructions"]
    assert isinstance(instructions, list)
    instructions.append({"name": "forgotten", "arguments": {}})
    assert stored_labels(trace, script(func)) == ["decision 1", "decision 2"]
