"""Executors: arrays by name and in order, clear errors, calls from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.executor.error import ArgumentError
from compiler.executor.executor import Executor
from compiler.executor.package import Package
from compiler.package.build_package import build_package
from compiler.package.plan import ModelPlan
from tests.model_plans import PlanBuilder, Value, classifier
from tests.targets import here

RNG = np.random.default_rng(0)
IMAGE = RNG.random((1, 784), "float32")


@cache
def _classifier() -> tuple[ModelPlan, Value]:
    # Only when a test runs: tests are collected for CPUs, too, whose code this host can't run.
    return classifier()


def _package() -> Package:
    return build_package(_classifier()[0])


@pytest.fixture(scope="module")
def executor() -> Executor:
    return Executor(_package())


def _expected(image: NDArray[Any]) -> NDArray[Any]:
    return _classifier()[1].reference({"image": image})


def test_inputs_are_passed_by_name_or_in_order(executor: Executor) -> None:
    output = np.empty((1, 10), "float32")
    for inputs in ({"image": IMAGE}, [IMAGE], (IMAGE,)):
        for outputs in (None, {"probabilities": output}, [output]):
            results = executor.run(inputs, outputs)
            np.testing.assert_allclose(results["probabilities"], _expected(IMAGE), rtol=1e-4)
            assert outputs is None or results["probabilities"] is output
            output.fill(np.nan)
    results = executor.run(image=IMAGE)
    np.testing.assert_allclose(results["probabilities"], _expected(IMAGE), rtol=1e-4)
    with pytest.raises(ArgumentError, match="in order and by name: expected one of both"):
        executor.run([IMAGE], image=IMAGE)


def test_set_input_run_and_get_output() -> None:
    executor = Executor(_package())
    with pytest.raises(ArgumentError, match="mnist did not run yet: call run first"):
        executor.get_output("probabilities")
    with pytest.raises(ArgumentError, match="missing input 'image'"):
        executor.run()
    image = IMAGE.copy()
    executor.set_input("image", image)
    image.fill(np.nan)  # the executor has a copy
    executor.run()
    np.testing.assert_allclose(executor.get_output("probabilities"), _expected(IMAGE), rtol=1e-4)
    with pytest.raises(ArgumentError, match="'x' is not an input: expected image"):
        executor.set_input("x", IMAGE)
    with pytest.raises(ArgumentError, match="'y' is not an output: expected probabilities"):
        executor.get_output("y")


def test_a_bound_function_reads_the_arrays_again_in_each_call(executor: Executor) -> None:
    image, output = IMAGE.copy(), np.empty((1, 10), "float32")
    run = executor.bind([image], [output])
    for _ in range(2):
        image[:] = RNG.random((1, 784), "float32")
        run()
        np.testing.assert_allclose(output, _expected(image), rtol=1e-4)


class _OtherArray:
    """An array of another library: NumPy's behind the DLPack protocol alone."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries_share_their_memory(executor: Executor) -> None:
    output = np.empty((1, 10), "float32")
    executor.run([_OtherArray(IMAGE)], [_OtherArray(output)])
    np.testing.assert_allclose(output, _expected(IMAGE), rtol=1e-4)


def test_arrays_that_their_library_does_not_share_are_refused(executor: Executor) -> None:
    with pytest.raises(ArgumentError, match="image is a _OtherArray that cannot be used: DLPack"):
        executor.run([_OtherArray(np.array(["text"]))])


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({}, "missing input 'image': the inputs are image"),
        ({"image": IMAGE, "y": IMAGE}, "unknown input 'y': the inputs are image"),
        ([], "0 inputs: expected 1, image"),
        ([IMAGE, IMAGE], "2 inputs: expected 1, image"),
        (IMAGE, "the inputs are a ndarray: expected a dictionary or a list of arrays"),
        ([IMAGE[0]], r"image is float32\[784\]: expected float32\[1, 784\]"),
        ([IMAGE.astype("float64")], r"image is float64\[1, 784\]: expected float32"),
        ([np.zeros((1, 2 * 784), "float32")[:, ::2]], "image is not contiguous: pass np.asc"),
        ([IMAGE.tolist()], "image is a list: expected an array"),
        ([np.ma.masked_array(IMAGE, False)], "image is a MaskedArray"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(executor: Executor, inputs: Any, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        executor.run(inputs)


def test_outputs_that_do_not_fit_are_refused(executor: Executor) -> None:
    read_only = np.zeros((1, 10), "float32")
    read_only.flags.writeable = False
    for output, reason in (
        (read_only, "probabilities is written, and the array is read-only"),
        (np.zeros((1, 20), "float32")[:, ::2], "it is written, so pass a dense array"),
        (IMAGE[:, 5:15], "probabilities is written, and overlaps parameter image"),
    ):
        with pytest.raises(ArgumentError, match=reason):
            executor.run([IMAGE], [output])


def test_too_few_threads_are_refused() -> None:
    with pytest.raises(ArgumentError, match="num_threads is 0: expected 1 or more"):
        Executor(_package(), num_threads=0)


def test_an_executor_shows_what_it_takes_and_returns(executor: Executor) -> None:
    expected = "<Executor mnist(image: float32[1, 784]) -> (probabilities: float32[1, 10])>"
    assert repr(executor) == expected


def test_calls_from_several_threads_each_get_their_own_result(executor: Executor) -> None:
    images = [RNG.random((1, 784), "float32") for _ in range(200)]

    def bound(image: NDArray[Any]) -> NDArray[Any]:
        output = np.empty((1, 10), "float32")
        executor.bind([image], [output])()
        return output

    with ThreadPoolExecutor(8) as pool:
        for outputs in (
            pool.map(lambda image: executor.run([image])["probabilities"], images),
            pool.map(bound, images),
        ):
            for image, output in zip(images, outputs, strict=True):
                np.testing.assert_allclose(output, _expected(image), rtol=1e-4)


def test_a_bound_function_outlives_its_executor() -> None:
    output = np.empty((1, 10), "float32")
    run = Executor(_package()).bind([IMAGE], [output])
    run()
    np.testing.assert_allclose(output, _expected(IMAGE), rtol=1e-4)


def test_a_model_with_several_inputs_takes_them_in_any_order_by_name() -> None:
    plan = PlanBuilder("sums", here())
    first, second = plan.input("a", 4, 8), plan.input("b", 4, 8)
    total = plan.add(first, plan.softmax(second), output="y")
    executor = Executor(build_package(plan.finish()))
    inputs = {name: RNG.standard_normal((4, 8)).astype("float32") for name in ("b", "a")}
    np.testing.assert_allclose(executor.run(inputs)["y"], total.reference(inputs), rtol=1e-5)
