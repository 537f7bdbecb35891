"""What a check by rows and signed sums accepts and refuses; NumPy computes the products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler.backends.cuda.runtime.compare import DeviceCase
from compiler.backends.host_arrays import HostArrays
from compiler.backends.trial_arrays import WrongResultError
from compiler.ir.interpret import error_growth
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.spot_check.spot_check import spot_check

Result = NDArray[np.float64]

M, N, K = 1025, 1030, 48
SPECS = {
    "float32": f"matmul:{M},{N},{K}",
    "bfloat16": f"matmul:{M},{N},{K},acc_dtype=float32:bfloat16",
    "int8": f"matmul:{M},{N},{K},out_dtype=int32,acc_dtype=int32:int8",
}


class Product:
    """A product whose result is checked in parts."""

    def __init__(self, spec: str) -> None:
        self.func = lw.ops.from_spec(spec)
        inputs = random_inputs(self.func, 0)
        parts = spot_check(self.func, inputs, 0)
        assert parts is not None
        self.case = CheckCase(inputs, parts[0], {}, parts[1])
        self.a, self.b = (array.astype(np.float64) for array in inputs.values())

    @property
    def result(self) -> Result:
        return self.a @ self.b

    def message(self, result: Result) -> str:
        """Return the error of a result on the host; that on a device is the same."""
        output = self.func.buffers[-1]
        stored = result.astype(output.dtype)
        on_host = HostArrays(self.func, self.case)
        np.copyto(on_host.fresh_arrays()[-1], stored)
        on_device = DeviceCase(np, self.func, self.case)
        arrays = on_device.new_arrays()
        on_device.fill(arrays)
        arrays[output.name][:] = stored.reshape(-1).view(np.uint8)
        messages = []
        for check in (on_host.check, lambda: on_device.check(arrays)):
            try:
                check()
                messages.append("")
            except WrongResultError as error:
                messages.append(str(error))
        assert messages[0] == messages[1]
        return messages[0]

    def unknown_row(self) -> int:
        """Return a row that is not computed exactly."""
        assert self.case.spot is not None
        return int(np.setdiff1d(np.arange(M), self.case.spot.rows)[7])


@pytest.fixture(scope="module", params=SPECS)
def product(request: pytest.FixtureRequest) -> Product:
    return Product(SPECS[request.param])


def a_zero_tile(product: Product, result: Result) -> None:
    row = product.unknown_row()
    result[row : row + 16, 64:128] = 0


def one_large_element(product: Product, result: Result) -> None:
    result[product.unknown_row(), 515] += 0.5 * np.abs(result).max()


def a_term_is_dropped(product: Product, result: Result) -> None:
    result -= np.outer(product.a[:, 5], product.b[5])


def zeros(_: Product, result: Result) -> None:
    result[:] = 0


def a_transposed_block(product: Product, result: Result) -> None:
    row = product.unknown_row()
    block = slice(row, row + 8), slice(96, 104)
    result[block] = result[block].T.copy()


def two_swapped_columns(_: Product, result: Result) -> None:
    result[:, [8, 9]] = result[:, [9, 8]]


def two_swapped_elements(product: Product, result: Result) -> None:
    row = product.unknown_row()
    low, high = result[row, :16].argmin(), result[row, :16].argmax()
    result[row, [low, high]] = result[row, [high, low]]


def a_last_column_of_zeros(_: Product, result: Result) -> None:
    result[:, -1] = 0


def the_last_row_is_a_copy_of_the_first(_: Product, result: Result) -> None:
    result[-1] = result[0]


MUTANTS = [
    *(a_zero_tile, one_large_element, a_term_is_dropped, zeros, a_transposed_block),
    *(two_swapped_columns, two_swapped_elements, a_last_column_of_zeros),
    the_last_row_is_a_copy_of_the_first,
]


def test_the_exact_result_is_accepted(product: Product) -> None:
    assert product.message(product.result) == ""


@pytest.mark.parametrize("mutate", MUTANTS)
def test_a_wrong_result_is_refused(
    product: Product, mutate: Callable[[Product, Result], None]
) -> None:
    result = product.result
    mutate(product, result)
    assert product.message(result)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_element_that_is_no_number_is_refused(value: float) -> None:
    product = Product(SPECS["bfloat16"])
    result = product.result
    result[product.unknown_row(), -1] = value
    assert product.message(result)


def test_results_that_were_not_written_are_refused(product: Product) -> None:
    on_host = HostArrays(product.func, product.case)
    on_host.fresh_arrays()
    with pytest.raises(WrongResultError):
        on_host.check()
    on_device = DeviceCase(np, product.func, product.case)
    arrays = on_device.new_arrays()
    on_device.fill(arrays)
    with pytest.raises(WrongResultError):
        on_device.check(arrays)


def test_sums_in_float32_in_any_order_are_accepted() -> None:
    product = Product(f"matmul:1024,1024,{4 * K},acc_dtype=float32:bfloat16")
    a, b = product.a.astype(np.float32), product.b.astype(np.float32)
    total = np.zeros((1024, 1024), np.float32)
    for k in reversed(range(4 * K)):
        total += np.outer(a[:, k], b[k])
    assert product.message(total.astype(np.float64)) == ""


def test_an_error_of_many_elements_is_seen_that_none_shows_alone() -> None:
    product = Product(SPECS["bfloat16"])
    case, result = product.case, product.result
    assert case.spot is not None
    errors = np.random.default_rng(1).choice((-1.0, 1.0), result.shape)
    errors[case.spot.rows] = 0
    result += errors * 0.0012 * np.abs(result).max()  # of 0.0078 that one element may be off by
    assert "on average" in product.message(result)


def test_messages_name_the_element_and_the_sum() -> None:
    product = Product(SPECS["float32"])
    assert product.case.spot is not None
    known, unknown = int(product.case.spot.rows[3]), product.unknown_row()
    first, second = product.result, product.result
    first[known, 40] += 1
    second[unknown, 40] += 1
    assert product.message(first).startswith(f"C[{known}, 40] is ")
    assert f"the sum of C[{unknown}, 7::33] with random signs is off by" in product.message(second)


@pytest.mark.parametrize(
    "spec",
    [
        f"matmul:{M},{N},{K},activation=relu",  # not linear
        f"matmul:{M},{N},{K},acc_dtype=float16:float16",  # its tolerance would hide zeros
        f"matmul:{M},{N},{K}:float8_e4m3fn",  # so would this one's
        f"matmul:{M},{N},{K}:int8",  # its sums wrap
        "matmul:64,96,4096",  # no long axis
        "softmax:2048,2048",
    ],
)
def test_other_programs_are_checked_whole(spec: str) -> None:
    func = lw.ops.from_spec(spec)
    assert spot_check(func, random_inputs(func, 0), 0) is None


def test_values_beyond_a_type_are_checked_whole() -> None:
    func = lw.ops.from_spec(f"matmul:{M},{N},{K},acc_dtype=float32:float16")
    inputs = {n: (a * 300).astype(a.dtype) for n, a in random_inputs(func, 0).items()}
    products = inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)
    assert np.abs(products).max() > np.finfo(np.float16).max
    assert spot_check(func, inputs, 0) is None


def test_a_short_run_of_the_oracle_checks_the_whole_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func = lw.ops.from_spec(f"matmul:{M},{N},4")
    assert check_case(func, 0).spot is None
    monkeypatch.setattr(error_growth, "_MAX_SECS_OF_WHOLE", 0.0)
    assert check_case(func, 0).spot is not None


def test_a_very_large_result_is_checked_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    func = lw.ops.from_spec(f"matmul:{M},{N},4")
    monkeypatch.setattr(error_growth, "_MAX_ELEMENTS_OF_WHOLE", M * N)
    assert check_case(func, 0).spot is None
    monkeypatch.setattr(error_growth, "_MAX_ELEMENTS_OF_WHOLE", M * N - 1)
    assert check_case(func, 0).spot is not None
