"""Arguments of a wrong type are refused before a primitive looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import matmul_relu

Call = Callable[[Any, Any], object]

WRONG: list[tuple[str, Call]] = [
    ("factors is 8: expected a list of integers and None", lambda s, k: s.split(k, 8)),
    ("factors is None: expected a list", lambda s, k: s.split(k, factors=None)),
    (
        "preserve_unit_iters is 'no': expected True or",
        lambda s, k: s.fuse(k, preserve_unit_iters="no"),
    ),
    ("expected an integer, got 1.5", lambda s, k: s.split(k, [None, 1.5])),
    ("thread_axis is None: expected a string", lambda s, k: s.bind(k, None)),
    ("storage_scope is 3: expected a string", lambda s, _: s.cache_read("Y", 0, 3)),
    ("read_buffer_index is [0]: expected the number", lambda s, _: s.cache_read("Y", [0], "local")),
    ("consumer_blocks is 1: expected a list", lambda s, _: s.cache_read("Y", 0, "local", 1)),
    ("buffer is 0: expected (", lambda s, _: s.reindex("Y", 0)),
    ("index is '0': expected an integer", lambda s, k: s.compute_at("Y", k, index="0")),
    ("factor_axis is 0.5: expected an integer", lambda s, k: s.rfactor(k, 0.5)),
    ("target is <BlockRV", lambda s, _: s.blockize(s.get_block("Y"))),
    ("expected an integer, got '16'", lambda s, _: s.pad_einsum("Y", [16, 16, "16"])),
    ("expected an integer, got 'Y'", lambda s, _: s.rolling_buffer("Y", "Y")),
    ("tensor_intrin is ['x']: expected a string", lambda s, k: s.tensorize(k, ["x"])),
    ("ann_key is 1: expected a string", lambda s, k: s.annotate(k, 1, 1)),
    ("probs is 0.5: expected a list of numbers", lambda s, _: s.sample_categorical([1], 0.5)),
    ("candidates is {1}: expected a list", lambda s, _: s.sample_categorical({1}, [1])),
    ("name is None: expected a string", lambda s, _: s.get_block(None)),
    ("func_name is 1: expected a string, or None", lambda s, _: s.get_sblock("Y", 1)),
    ('there is no function "[]"', lambda s, _: s.work_on([])),
]


@pytest.mark.parametrize(("message", "call"), WRONG, ids=[message for message, _ in WRONG])
def test_an_argument_of_a_wrong_type_is_refused(message: str, call: Call) -> None:
    sch = Schedule(matmul_relu())
    loop = sch.get_loops("Y")[2]
    before, program = sch.trace, sch.func
    with pytest.raises(ScheduleError) as caught:
        call(sch, loop)
    assert message in str(caught.value)
    assert structural_equal(sch.func, program)
    assert sch.trace.instructions[: len(before.instructions)] == before.instructions


def test_an_error_repeats_only_the_beginning_of_a_long_argument() -> None:
    sch = Schedule(matmul_relu(), error_render_level="fast")
    with pytest.raises(ScheduleError) as caught:
        sch.bind(sch.get_loops("Y")[0], [0] * 1000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 150


def test_values_that_were_sampled_are_integers_where_decisions_take_them() -> None:
    sch = Schedule(matmul_relu(), seed=0)
    most = sch.sample_categorical([4], [1.0])
    assert len(sch.sample_perfect_tile(sch.get_loops("Y")[0], 2, most)) == 2  # type: ignore[arg-type]
