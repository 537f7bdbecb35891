"""The names that the notes use beside schedules: they work, or an error says what replaces them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.driver import emit
from compiler.ir.analysis.structural import structural_equal
from tests.tutorials.mm_relu import MY_MODULE

TARGET = "cpu -num-cores=1"


@pytest.fixture(scope="module")
def rt_lib() -> lw.Module:
    library = lw.build(lw.parse_module(MY_MODULE), target=TARGET)
    assert isinstance(library, lw.Module)
    return library


def _arrays() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    a, b = (lw.nd.array(rng.random((128, 128), dtype=np.float32)) for _ in range(2))
    return a, b, lw.nd.empty((128, 128), dtype="float32")


def test_a_function_of_a_library_on_arrays_of_the_runtime(rt_lib: lw.Module) -> None:
    a, b, c = _arrays()
    rt_lib["mm_relu"](a, b, c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a.numpy() @ b.numpy(), 0), rtol=1e-4)
    assert type(c.numpy()) is type(c.asnumpy()) is np.ndarray
    with pytest.raises(KeyError, match="expected the kernel 'mm_relu'"):
        rt_lib["matmul"]


def test_arrays_lie_on_the_cpu() -> None:
    assert lw.nd.array([1, 2], lw.cpu(0)).shape == (2,)
    with pytest.raises(ValueError, match="the only CPU is"):
        lw.cpu(1)
    with pytest.raises(TypeError, match="expected a device"):
        lw.nd.empty((2,), "float32", "cpu")  # type: ignore[arg-type]


def test_a_timer_returns_its_samples_and_their_mean(rt_lib: lw.Module) -> None:
    timer = rt_lib.time_evaluator("mm_relu", lw.cpu(), number=2, repeat=3)
    timing = timer(*_arrays())
    assert len(timing.results) == 3
    assert timing.min <= timing.median <= timing.max
    assert timing.min <= timing.mean <= timing.max
    assert timing.std >= 0
    with pytest.raises(KeyError):
        rt_lib.time_evaluator("other")
    with pytest.raises(ValueError, match="number is 0, repeat is 1"):
        rt_lib.time_evaluator(number=0)


def test_source_is_shown_and_a_library_is_a_file(rt_lib: lw.Module, tmp_path: Path) -> None:
    assert "define" in rt_lib.get_source()
    assert "ret" in rt_lib.get_source("asm")
    with pytest.raises(ValueError, match="unknown source format 'cuda'"):
        rt_lib.get_source("cuda")
    rt_lib.export_library(tmp_path / "mm_relu.lib")
    loaded = lw.Module.load(tmp_path / "mm_relu.lib")
    arrays = _arrays()
    loaded["mm_relu"](*arrays)
    assert arrays[2].max() > 0
    with pytest.raises(ValueError, match="without its source: build the program"):
        loaded.get_source()


def test_a_loop_by_its_name_and_a_split_by_a_factor() -> None:
    sch = lw.Schedule(lw.parse_module(MY_MODULE))
    outer, inner = sch.split(sch.get_loop("j", "Y"), factor=4)
    sch.reorder(outer, sch.get_loop("k"), inner)
    by_factors = lw.Schedule(lw.parse_module(MY_MODULE))
    _, j, k = by_factors.get_loops("Y")
    outer, inner = by_factors.split(j, factors=[None, 4])
    by_factors.reorder(outer, k, inner)
    assert structural_equal(sch.func, by_factors.func)
    by_parts = lw.Schedule(lw.parse_module(MY_MODULE))
    assert [*map(str, by_parts.split(by_parts.get_loop("k"), nparts=32))]
    replayed = sch.trace.apply_to(lw.parse_module(MY_MODULE))
    assert structural_equal(replayed.func, sch.func)


def test_a_loop_name_that_is_not_clear_is_refused() -> None:
    sch = lw.Schedule(lw.parse_module(MY_MODULE))
    with pytest.raises(lw.ScheduleError, match=r"2 loops are called 'i', around the blocks Y, C"):
        sch.get_loop("i")
    with pytest.raises(lw.ScheduleError, match="there is no loop 'x'; the loops are: i, j, k"):
        sch.get_loop("x")
    for both in ({}, {"factors": [None, 4], "factor": 4}):
        with pytest.raises(lw.ScheduleError, match="expected one of factors="):
            sch.split(sch.get_loop("k"), **both)  # type: ignore[arg-type]


def test_a_printed_trace_is_a_program_that_runs() -> None:
    sch = lw.Schedule(lw.parse_module(MY_MODULE))
    sch.split(sch.get_loop("k"), factor=4)
    sch.transform_layout("Y", ("write", 0), lambda i, j: (j, i))
    scope: dict[str, Any] = {}
    exec(str(sch.trace), scope)
    again = lw.Schedule(lw.parse_module(MY_MODULE))
    scope["apply_trace"](again)
    assert structural_equal(again.func, sch.func)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("placeholder", r"te\.placeholder"),
        ("gpu", r"lw\.cpu\(\)"),
        *((name, rf"te\.{name}\(") for name in ("create_schedule", "thread_axis")),
    ],
)
def test_names_of_other_modules_name_their_replacement(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}'; instead: .*{instead}"):
        getattr(lw, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        _ = lw.nonsense


def test_a_schedule_alone_decides_which_loops_are_vectors() -> None:
    target = lw.Target("cpu -mcpu=x86-64-v3 -num-cores=1")

    def code(*, as_vectors: bool) -> str:
        sch = lw.Schedule(lw.parse_module(MY_MODULE))
        outer, inner = sch.split(sch.get_loop("j", "Y"), factor=4)
        sch.reorder(outer, sch.get_loop("k"), inner)
        if as_vectors:
            sch.vectorize(inner)
        return emit(sch.func, target).text

    as_written = emit(lw.parse_module(MY_MODULE)["mm_relu"], target).text
    assert "x float>" not in as_written
    assert "x float>" not in code(as_vectors=False)
    assert "<4 x float>" in code(as_vectors=True)
