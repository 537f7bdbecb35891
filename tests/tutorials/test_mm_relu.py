"""The notes on `mm_relu`: text in, each transformation in its order, what is printed and run."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import IRModule
from loopwright import te
from tests.tutorials import mm_relu as notes
from tests.tutorials.running import assert_close, random_array, run


def program(text: str) -> lw.PrimFunc:
    return lw.parse_module(text)["mm_relu"]


def check(sch: lw.Schedule, text: str) -> None:
    """Hold the program against the one that the notes print, and what it computes against NumPy."""
    assert structural_equal(sch.mod["mm_relu"], program(text))
    a, b = random_array(128, 128), random_array(128, 128, seed=1)
    assert_close(run(sch, a, b), np.maximum(a @ b, 0))


def test_the_reference_of_the_notes_computes_what_the_script_does() -> None:
    small = notes.MY_MODULE.replace("128", "8")
    a, b = random_array(8, 8), random_array(8, 8, seed=1)
    expected = np.empty((8, 8), "float32")
    notes.lnumpy_mm_relu(a, b, expected)
    np.testing.assert_allclose(run(program(small), a, b), expected, rtol=1e-5)
    np.testing.assert_allclose(expected, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-6)


def test_axes_one_by_one_and_all_in_one_are_the_same_program() -> None:
    assert structural_equal(program(notes.MY_MODULE), program(notes.MODULE))


@pytest.mark.parametrize("inner", [4, 8])
def test_each_transformation_prints_what_the_notes_print(inner: int) -> None:
    sch = lw.Schedule(lw.parse_module(notes.MY_MODULE))
    block_Y = sch.get_block("Y", func_name="mm_relu")
    _, j, k = sch.get_loops(block_Y)
    check(sch, notes.MODULE)

    j0, j1 = sch.split(j, factors=[None, inner])
    check(sch, notes.after_split(inner))

    sch.reorder(j0, k, j1)
    check(sch, notes.after_reorder(inner))

    block_C = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_C, j0)
    check(sch, notes.after_reverse_compute_at(inner))

    sch.decompose_reduction(block_Y, k)
    check(sch, notes.after_decompose_reduction(inner))


def transformed() -> lw.Schedule:
    sch = lw.Schedule(lw.parse_module(notes.MY_MODULE))
    block_Y = sch.get_block("Y")
    _, j, k = sch.get_loops(block_Y)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.decompose_reduction(block_Y, k)
    return sch


def test_loops_and_blocks_are_named_as_in_the_notes() -> None:
    sch = transformed()

    def loops(block: str) -> list[str]:
        return [sch.get(loop).var.name for loop in sch.get_loops(block)]  # type: ignore[union-attr]

    assert loops("Y_init") == ["i", "j_0", "j_1_init"]
    assert loops("Y_update") == ["i", "j_0", "k", "j_1"]
    assert loops("C") == ["i", "j_0", "ax0"]


def test_a_loop_that_was_split_is_gone() -> None:
    sch = lw.Schedule(lw.parse_module(notes.MY_MODULE))
    _, j, _ = sch.get_loops(sch.get_block("Y"))
    sch.split(j, factors=[None, 8])
    before = sch.mod
    with pytest.raises(lw.ScheduleError, match="split"):
        sch.split(j, factors=[None, 8])
    assert sch.mod == before


def test_a_printed_program_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    sch = transformed()
    sch.mod.show()
    shown = lw.parse_module(capsys.readouterr().out)
    assert structural_equal(shown["mm_relu"], sch.mod["mm_relu"])


def test_a_shown_trace_is_a_program_that_does_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    done = transformed()
    done.trace.show()
    text = capsys.readouterr().out
    for name in ("get_loops", "split", "reorder", "reverse_compute_at", "decompose_reduction"):
        assert f"sch.{name}(" in text
    sch = lw.Schedule(lw.parse_module(notes.MY_MODULE))
    exec(text, {"sch": sch})
    assert structural_equal(sch.mod["mm_relu"], done.mod["mm_relu"])


def test_a_trace_is_done_again_on_a_fresh_program() -> None:
    sch = transformed()
    again = sch.trace.apply_to(program(notes.MODULE))
    assert structural_equal(again.mod["mm_relu"], sch.mod["mm_relu"])


def test_tensor_expressions_give_the_program_that_the_notes_print() -> None:
    A = te.placeholder((128, 128), "float32", name="A")
    B = te.placeholder((128, 128), "float32", name="B")
    k = te.reduce_axis((0, 128), "k")
    Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0), name="C")
    te_func = te.create_prim_func([A, B, C]).with_attr({"global_symbol": "mm_relu"})
    module_from_te = IRModule((te_func,))
    assert structural_equal(module_from_te["mm_relu"], program(notes.MODULE_FROM_TE))
