import os

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.ir.interpret import error_growth
from compiler.target.target import Target
from tests.faults.requests import COPY
from workers.measure.prepared import PreparedWorkloads

BRAIN_COPY = COPY.replace("float32", "bfloat16")
COUNT = """\
@T.prim_func
def count(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "bool")):
    for i in T.serial(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + 1
    for i in T.serial(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi] > 0
"""
ADD_IN_PLACE = """\
@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = B[vi] + A[vi]
"""


def prepare(workload: str) -> TrialArrays:
    return PreparedWorkloads().add(workload, Target("cpu"))


def test_arrays_that_hold_the_right_result_pass() -> None:
    prepared = prepare(COPY)
    a, b = prepared.fresh_arrays()
    b[:] = a
    assert prepared.check() == 0
    prepared.check_again()


def test_an_element_that_was_not_written_is_seen_in_any_type() -> None:
    for workload, num_outputs in ((COPY, 1), (BRAIN_COPY, 1), (COUNT, 2)):
        prepared = prepare(workload)
        for left_out in range(num_outputs):
            a, *outputs = prepared.fresh_arrays()
            right = [a] if num_outputs == 1 else [a + 1, a > 0]
            for number, (output, values) in enumerate(zip(outputs, right, strict=True)):
                output[1:] = values[1:]
                if number != left_out:
                    output[0] = values[0]
            with pytest.raises(WrongResultError, match=r"\[0\]"):
                prepared.check()


def test_arrays_are_fresh_each_time() -> None:
    prepared = prepare(COPY)
    a, b = prepared.fresh_arrays()
    values = a.copy()
    a[:] = b[:] = 0
    a, b = prepared.fresh_arrays()
    np.testing.assert_array_equal(a, values)
    assert np.isnan(b).all()


def test_an_input_that_was_written_to_is_seen() -> None:
    prepared = prepare(COPY)
    a, b = prepared.fresh_arrays()
    b[:] = a
    a[3] = 0
    with pytest.raises(WrongResultError, match="wrote to its input A"):
        prepared.check()


def test_a_result_that_changes_later_is_seen() -> None:
    prepared = prepare(COPY)
    a, b = prepared.fresh_arrays()
    b[:] = a
    prepared.check()
    b[5] += 1
    with pytest.raises(WrongResultError, match=r"a later run differs from the first: B\[5\]"):
        prepared.check_again()


def test_arrays_begin_at_cache_lines_as_those_of_models_do() -> None:
    prepared = prepare(COPY.replace("16", "262144"))
    made = [prepared.again() for _ in range(4)]
    assert {array.ctypes.data % 64 for one in made for array in one.fresh_arrays()} == {0}


def test_a_parameter_that_is_updated_in_place_starts_from_its_input() -> None:
    prepared = prepare(ADD_IN_PLACE)
    a, b = prepared.fresh_arrays()
    assert not np.isnan(b).any()
    b += a
    prepared.check()
    b += a
    prepared.check_again()


def test_the_result_of_a_workload_is_found_by_who_comes_after() -> None:
    slots = [os.memfd_create("test")]
    try:
        first = PreparedWorkloads(slots).add(COPY, Target("cpu"))
        later = PreparedWorkloads(slots).find(COPY, Target("cpu"))
        assert later is not None
        a, b = later.fresh_arrays()
        np.testing.assert_array_equal(a, first.fresh_arrays()[0])
        b[:] = a
        later.check()
        assert PreparedWorkloads(slots).find(COUNT, Target("cpu")) is None
    finally:
        os.close(slots[0])


def test_workloads_take_turns() -> None:
    slots = [os.memfd_create("test") for _ in range(2)]
    try:
        workloads = PreparedWorkloads(slots)
        made = [workloads.add(text, Target("cpu")) for text in (COPY, COUNT)]
        for text, prepared in zip((COPY, COUNT), made, strict=True):
            found = workloads.find(text, Target("cpu"))
            assert found is not None
            assert found.func.name == prepared.func.name
    finally:
        for fd in slots:
            os.close(fd)


def test_a_result_that_is_checked_in_parts_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_growth, "_MAX_SECS_OF_WHOLE", 0.0)
    workload = str(lw.ops.matmul(1024, 1024, 4))
    slot = os.memfd_create("slot")
    try:
        assert PreparedWorkloads([slot]).add(workload, Target("cpu")).is_spot_checked
        again = PreparedWorkloads([slot]).find(workload, Target("cpu"))
        assert again is not None
        assert again.is_spot_checked
        a, b, c = again.fresh_arrays()
        c[:] = a @ b
        assert again.check() < 1e-6
        c[700, 500] += 1
        with pytest.raises(WrongResultError, match=r"C\[700"):
            again.check()
    finally:
        os.close(slot)
