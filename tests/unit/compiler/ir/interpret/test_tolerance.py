import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.dtypes import DType
from compiler.ir.interpret.error_growth import check_case
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import Mismatch, compare, interpret, tolerance
from compiler.ir.interpret.tolerance import computed_epsilon, conversion_nudges
from compiler.script import parse

FUNC = ops.matmul(16, 16, 64)
INPUTS = random_inputs(FUNC, 0)
EXPECTED = interpret(FUNC, INPUTS)


def test_the_result_of_float32_arithmetic_passes() -> None:
    got = np.zeros((16, 16), np.float32)
    for k in range(64):
        got += np.outer(INPUTS["A"][:, k], INPUTS["B"][k])
    error = compare(FUNC, {"C": got}, EXPECTED)
    assert 0 < error < tolerance(FUNC) / 3


def test_a_missing_term_is_seen() -> None:
    got = INPUTS["A"][:, :-1] @ INPUTS["B"][:-1]
    with pytest.raises(Mismatch):
        compare(FUNC, {"C": got}, EXPECTED)


def test_a_mismatch_names_the_worst_element() -> None:
    got = EXPECTED["C"].copy()
    got[3, 4] += 1
    got[5, 6] += 2
    with pytest.raises(Mismatch) as caught:
        compare(FUNC, {"C": got}, EXPECTED)
    mismatch = caught.value
    assert (mismatch.output, mismatch.index, mismatch.count) == ("C", (5, 6), 2)
    assert mismatch.got == got[5, 6]
    assert mismatch.expected == EXPECTED["C"][5, 6]
    assert mismatch.error == pytest.approx(2 / np.abs(EXPECTED["C"]).max(), rel=1e-5)
    assert str(mismatch).startswith("C[5, 6] is ")


def test_cumulative_sums_may_be_added_in_another_order() -> None:
    func = ops.cumsum(2, 50_000)
    inputs = random_inputs(func, 0)
    # One float32 after another.
    rounded_often = np.cumsum(inputs["A"], axis=1)
    error = compare(func, {"B": rounded_often}, interpret(func, inputs))
    assert 0 < error < tolerance(func) / 3
    shifted = rounded_often + np.abs(rounded_often).max() * 2 * tolerance(func)
    with pytest.raises(Mismatch):
        compare(func, {"B": shifted.astype(np.float32)}, interpret(func, inputs))


def test_a_nan_is_a_mismatch_wherever_it_is() -> None:
    spoiled = EXPECTED["C"].copy()
    spoiled[0, 0] = np.nan
    for got, expected in ((spoiled, EXPECTED["C"]), (EXPECTED["C"], spoiled), (spoiled, spoiled)):
        with pytest.raises(Mismatch):
            compare(FUNC, {"C": got}, {"C": expected})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_the_largest_error_decides(dtype: DType, share: float) -> None:
    func = ops.relu(1000, dtype=dtype)
    expected = np.linspace(-3, 2, 1000).astype(dtype)
    got = expected.copy()
    got[7] += 3 * share * tolerance(func)
    got[9] -= 3 * share * tolerance(func) / 2
    if share < 1:
        error = compare(func, {"B": got}, {"B": expected})
        assert error == pytest.approx(share * tolerance(func), rel=0.1)
    else:
        with pytest.raises(Mismatch):
            compare(func, {"B": got}, {"B": expected})


def test_equal_infinities_are_equal() -> None:
    func = ops.relu(2)
    infinite = np.array([np.inf, 1], np.float32)
    assert compare(func, {"B": infinite}, {"B": infinite}) == 0
    with pytest.raises(Mismatch):
        compare(func, {"B": np.array([1e30, 1], np.float32)}, {"B": infinite})


def test_integers_must_be_equal() -> None:
    func = ops.matmul(2, 2, 2, "int32")
    expected = interpret(func, random_inputs(func, 0))
    assert compare(func, expected, expected) == 0
    with pytest.raises(Mismatch):
        compare(func, {"C": expected["C"] + 1}, expected)


def test_an_output_of_zeros_is_compared_with_one() -> None:
    func = ops.relu(4)
    zeros = np.zeros(4, np.float32)
    assert compare(func, {"B": zeros}, {"B": zeros}) == 0
    with pytest.raises(Mismatch):
        compare(func, {"B": zeros + 0.01}, {"B": zeros})


def test_the_tolerance_grows_with_the_root_of_the_reduction_length() -> None:
    short, long = (tolerance(ops.row_sum(4, n)) for n in (100, 10_000))
    assert 5 < long / short < 10
    assert tolerance(ops.row_sum(4, 100, "float64")) < short / 1e6


def test_the_tolerance_is_that_of_the_narrowest_arithmetic() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float16"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + {}
"""
    wide = parse(text.format('T.Cast("float32", A[vi, vk]) * T.Cast("float32", A[vi, vk])'))
    narrow = parse(text.format('T.Cast("float32", A[vi, vk] * A[vi, vk])'))
    assert tolerance(narrow) > 100 * tolerance(wide)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_narrow_result_of_wide_sums_is_rounded_once(dtype: DType) -> None:
    func = ops.from_spec(f"matmul:16,16,512,acc_dtype=float32:{dtype}")
    case = check_case(func, 0)
    exact = case.inputs["A"].astype(np.float64) @ case.inputs["B"].astype(np.float64)
    (name,) = case.expected
    assert compare(func, {name: exact.astype(dtype)}, case.expected, case.growth) < 1e-2
    most_terms = case.inputs["A"][:, :480].astype(float) @ case.inputs["B"][:480].astype(float)
    with pytest.raises(Mismatch):
        compare(func, {name: most_terms.astype(dtype)}, case.expected, case.growth)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_missing_term_of_a_narrow_result_is_found(dtype: DType) -> None:
    func = ops.from_spec(f"matmul:64,64,256,acc_dtype=float32:{dtype}")
    case = check_case(func, 0)
    a, b = (case.inputs[name].astype(np.float64) for name in "AB")
    (name,) = case.expected
    with pytest.raises(Mismatch):
        compare(func, {name: (a[:, 1:] @ b[1:]).astype(dtype)}, case.expected, case.growth)


def test_copies_and_last_conversions_do_not_amplify_errors() -> None:
    spec = "conv2d:1,8,6,6,8,3,1,1,layout=NHWC,acc_dtype=float32:{}"
    wide, narrow = (ops.from_spec(spec.format(dtype)) for dtype in ("float32", "bfloat16"))
    assert computed_epsilon(narrow) == computed_epsilon(wide) == 2.0**-23
    A = te.placeholder((4,), "float32", name="A")
    rounded = te.compute((4,), lambda i: te.cast("bfloat16", A[i]), name="rounded")
    wide_again = te.compute((4,), lambda i: te.cast("float32", rounded[i]) * 2.0, name="B")
    nudges = conversion_nudges(te.create_prim_func([A, wide_again]))
    assert {buffer.name: 8 * share for buffer, share in nudges.items()} == {"rounded": 2.0**-7}


def test_a_result_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"output C has shape \(2, 2\): expected \(16, 16\)"):
        compare(FUNC, {"C": np.zeros((2, 2), np.float32)}, EXPECTED)
    with pytest.raises(ValueError, match="output C has shape None"):
        compare(FUNC, {}, EXPECTED)


def test_roles_of_parameters() -> None:
    assert param_roles(ops.mm_relu(4, 4, 4)) == (("A", "B"), ("C",))
    assert param_roles(ops.layer_norm(4, 4)) == (("A", "gamma", "beta"), ("B",))


def test_random_inputs_depend_on_the_seed_alone() -> None:
    again, other = random_inputs(FUNC, 0), random_inputs(FUNC, 1)
    np.testing.assert_array_equal(INPUTS["A"], again["A"])
    assert (INPUTS["A"] != other["A"]).any()


def test_random_values_stay_away_from_zero_and_have_both_signs() -> None:
    values = INPUTS["A"]
    assert np.abs(values).min() >= 0.25
    assert (values < 0).any()
    assert (values > 0).any()


def test_random_values_are_positive_where_roots_are_taken() -> None:
    assert (random_inputs(ops.layer_norm(4, 8), 0)["A"] > 0).all()


def test_random_integers_fit_their_type() -> None:
    for dtype in ("int8", "uint8", "int64"):
        values = random_inputs(ops.relu(100, dtype=dtype), 0)["A"]
        assert values.dtype == dtype
        assert len(np.unique(values)) > 5
