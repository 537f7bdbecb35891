"""The comparison on a device, run with NumPy: it agrees with that of the host on planted errors."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.cuda.runtime.compare import DeviceCase, values
from compiler.backends.host_arrays import HostArrays
from compiler.backends.trial_arrays import WrongResultError
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.script.parser import parse
from tests.unit.workers.measure.test_prepared import ADD_IN_PLACE, COUNT

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
MATMUL = lw.ops.matmul(6, 5, 4)
RELU = lw.ops.from_spec("relu:8")


def device_case(func: lw.PrimFunc, case: CheckCase) -> DeviceCase:
    return DeviceCase(np, func, case)


def error_on_both(func: lw.PrimFunc, case: CheckCase, name: str, result: np.ndarray) -> list[str]:
    """Return the messages of both comparisons for a result; without one, the largest error."""
    messages = []
    on_host = HostArrays(func, case)
    for array, buffer in zip(on_host.fresh_arrays(), func.buffers, strict=True):
        if buffer.name in case.expected:
            np.copyto(array, result if buffer.name == name else case.expected[buffer.name])
    on_device = device_case(func, case)
    arrays = on_device.new_arrays()
    on_device.fill(arrays)
    for output, expected in case.expected.items():
        filled = result if output == name else expected
        arrays[output][:] = np.ascontiguousarray(filled).reshape(-1).view(np.uint8)
    for check in (on_host.check, lambda: on_device.check(arrays)):
        try:
            messages.append(f"{check():.3g}")
        except WrongResultError as error:
            messages.append(str(error))
    return messages


@pytest.mark.parametrize("error", [0.0, 1e-7, 1e-6, 1e-5, 1e-3, 1.0, np.inf, np.nan])
def test_planted_errors_are_judged_as_on_the_host(error: float) -> None:
    case = check_case(MATMUL, 0)
    (name,) = case.expected
    result = case.expected[name].copy()
    result[3, 2] += error
    on_host, on_device = error_on_both(MATMUL, case, name, result)
    assert on_device == on_host
    assert ("is off" in on_host or "expected" in on_host) == (not error < 1e-5)


def test_each_type_of_output_is_compared() -> None:
    func = parse(COUNT)
    case = check_case(func, 0)
    for name, expected in case.expected.items():
        result = expected.copy()
        result[2] = ~result[2] if result.dtype == bool else result[2] + 1
        on_host, on_device = error_on_both(func, case, name, result)
        assert on_device == on_host
        assert f"{name}[2]" in on_device


def test_integers_that_float64_cannot_tell_apart_differ() -> None:
    func = parse(COUNT.replace("int32", "int64"))
    case = check_case(func, 0)
    large = dict(case.expected) | {"B": np.full(4, 1 << 60)}
    shifted = large["B"] + np.array([0, 0, 1, 0])
    (_, on_device) = error_on_both(func, CheckCase(case.inputs, large, {}), "B", shifted)
    assert "B[2]" in on_device


@pytest.mark.parametrize("dtype", FLOATS)
def test_bytes_are_decoded_as_the_library_of_types_does(dtype: str) -> None:
    raw = np.random.default_rng(0).integers(0, 256, 4096, np.uint8)
    with np.errstate(invalid="ignore"):
        expected = raw.view(dtype).astype(np.float64)
    np.testing.assert_array_equal(values(np, raw, dtype), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("func", [RELU, parse(COUNT), lw.ops.from_spec("relu:8:bfloat16")])
def test_an_output_that_is_not_written_is_wrong_in_each_element(func: lw.PrimFunc) -> None:
    on_device = device_case(func, check_case(func, 0))
    arrays = on_device.new_arrays()
    on_device.fill(arrays)
    num_elements = 4 if func.name == "count" else 8
    with pytest.raises(WrongResultError, match=f"{num_elements} element"):
        on_device.check(arrays)


def test_an_input_that_was_written_is_found() -> None:
    case = check_case(RELU, 0)
    on_device = device_case(RELU, case)
    arrays = on_device.new_arrays()
    on_device.fill(arrays)
    (name,), (output,) = case.inputs, case.expected
    arrays[output][:] = case.expected[output].view(np.uint8)
    assert on_device.check(arrays) == 0
    arrays[name][0] ^= 1
    with pytest.raises(WrongResultError, match=f"wrote to its input {name}"):
        on_device.check(arrays)


def test_a_later_result_is_compared_with_the_first() -> None:
    case = check_case(RELU, 0)
    on_device = device_case(RELU, case)
    arrays = on_device.new_arrays()
    on_device.fill(arrays)
    first = on_device.outputs_of(arrays)
    assert on_device.are_outputs(arrays, first)
    (output,) = first
    arrays[output][-1] ^= 1
    assert not on_device.are_outputs(arrays, first)


def test_a_program_that_updates_its_input_is_known() -> None:
    func = parse(ADD_IN_PLACE)
    assert device_case(func, check_case(func, 0)).is_updated_in_place
    assert not device_case(RELU, check_case(RELU, 0)).is_updated_in_place


def test_large_outputs_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.backends.cuda.runtime.compare._CHUNK", 7)
    case = check_case(MATMUL, 0)
    (name,) = case.expected
    result = case.expected[name].copy()
    result[5, 4] += 1
    result[0, 0] += 2
    on_host, on_device = error_on_both(MATMUL, case, name, result)
    assert on_device == on_host
