"""Linked models compute what NumPy does, and leave nothing else in their object."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.executor.elf import ObjectFile
from compiler.executor.executor import Executor
from compiler.ir.core.dtypes import DType
from compiler.package.build_package import build_package
from compiler.package.link import compile_plan
from compiler.package.plan import BufferRef, Region
from compiler.package.verify_plan import PlanError
from compiler.target.cpu import CpuTarget
from tests.model_plans import classifier, parallel_plan, random_plan, remainder_plan
from tests.targets import here, level


@pytest.mark.parametrize("seed", range(40))
def test_a_random_plan_computes_what_numpy_does(seed: int) -> None:
    plan, results = random_plan(seed, here())
    executor = Executor(build_package(plan))
    rng = np.random.default_rng(seed)
    for _ in range(2):
        inputs = {"x": rng.standard_normal(plan.inputs[0].shape).astype("float32")}
        executor._scratch.arena.fill(0xFF)  # NaN in each float that no step writes
        outputs = executor.run(inputs)
        for result, output in zip(results, outputs.values(), strict=True):
            np.testing.assert_allclose(output, result.reference(inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_parallel_loops_run_on_a_pool_or_on_the_thread_of_the_caller(threads: int) -> None:
    plan, result = parallel_plan(2)
    assert plan.num_threads == 2
    package = build_package(plan)
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((512, 512)).astype("float32") for name in "ab"}
    executor = Executor(package, num_threads=threads)
    np.testing.assert_array_equal(executor.run(inputs)["y"], result.reference(inputs))


def test_an_object_exports_only_the_function_that_runs_the_model() -> None:
    plan, _ = classifier(level(3))
    code = ObjectFile(compile_plan(plan))
    assert code.arch == "x86_64"
    assert list(code.link(0, len).addresses) == ["mnist_run"]


def test_equal_plans_give_equal_objects() -> None:
    assert compile_plan(classifier(level(3))[0]) == compile_plan(classifier(level(3))[0])


def test_a_plan_that_is_not_legal_is_not_compiled() -> None:
    plan, _ = classifier(level(3))
    last = plan.steps[-1]
    beyond = replace(last, arguments=(BufferRef(Region.ARENA, 1 << 40), last.arguments[1]))
    with pytest.raises(PlanError, match=r"step 2 \(k2\): A has 40 bytes at 1099511627776"):
        compile_plan(replace(plan, steps=(*plan.steps[:2], beyond)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("cpu", ["cortex-a9", "cortex-a15"])
def test_a_plan_for_a_cpu_without_divisions_calls_those_of_libgcc(cpu: str, dtype: DType) -> None:
    plan = remainder_plan(CpuTarget(f"cpu -mcpu={cpu} -num-cores=1"), dtype)
    called = ObjectFile(compile_plan(plan)).externals
    has_division = cpu == "cortex-a15" and "64" not in dtype
    assert all(name.startswith("__aeabi_") for name in called)
    assert bool(called) is not has_division
