"""Plans of models that are made by hand: values of two dimensions, packed weights, one arena."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import ops, te
from compiler.backends.backend import backend_of
from compiler.backends.module import Module
from compiler.executor.extents import fixed
from compiler.executor.memory import aligned_empty
from compiler.executor.params import Param
from compiler.ir.analysis.constant_params import constant_params, with_constants
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.package.plan import (
    ALIGNMENT,
    BufferRef,
    ModelPlan,
    PlacedArray,
    PlannedKernel,
    Region,
    Step,
)
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget
from tests.targets import here

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Value:
    """A float32 value of a model: where it is, and its reference as a function of the inputs."""

    ref: BufferRef
    shape: tuple[int, ...]
    reference: Callable[[Mapping[str, Array]], Array]


class PlanBuilder:
    """Makes a plan call by call; each value of the arena has its own place."""

    def __init__(self, name: str, target: CpuTarget, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self._name, self._target = name, target
        self._inputs: list[Param] = []
        self._outputs: list[Param] = []
        self._kernels: dict[str, PlannedKernel] = {}
        self._steps: list[Step] = []
        self._weights: list[PlacedArray] = []
        self._weights_end = 0
        self._arena_end = 0

    def input(self, name: str, *shape: int) -> Value:
        """Add an input."""
        self._inputs.append(Param(name, shape, "float32", is_output=False))
        return Value(BufferRef(Region.INPUT, len(self._inputs) - 1), shape, lambda x: x[name])

    def dense(self, value: Value, width: int, *, output: str = "", relu: bool = False) -> Value:
        """Add a product with packed random weights, a bias and perhaps a relu."""
        rows, depth = value.shape
        weight = self._constant(width, depth) / np.float32(np.sqrt(depth))
        bias = self._constant(width)
        func = ops.dense(rows, width, depth, bias=True, activation="relu" if relu else None)
        func = with_constants(func, ["W", "bias"])

        def reference(inputs: Mapping[str, Array]) -> Array:
            product = value.reference(inputs).astype("float64") @ weight.T + bias
            return np.maximum(product, 0) if relu else product

        return self._call(
            _packed_panels(func), [value], {"W": weight, "bias": bias}, reference, output
        )

    def softmax(self, value: Value, *, output: str = "") -> Value:
        """Add a softmax of rows."""

        def reference(inputs: Mapping[str, Array]) -> Array:
            x = value.reference(inputs)
            e = np.exp(x - x.max(axis=1, keepdims=True))
            result: Array = e / e.sum(axis=1, keepdims=True)
            return result

        return self._call(ops.softmax(*value.shape), [value], {}, reference, output)

    def add(self, first: Value, second: Value, *, output: str = "") -> Value:
        """Add a sum of two values."""
        return self._call(
            ops.add(*first.shape),
            [first, second],
            {},
            lambda x: first.reference(x) + second.reference(x),
            output,
        )

    def finish(self) -> ModelPlan:
        """Return the plan."""
        return ModelPlan(
            self._name,
            self._target,
            tuple(self._inputs),
            tuple(self._outputs),
            self._kernels,
            tuple(self._steps),
            self._arena_end,
            tuple(self._weights),
        )

    def _constant(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype("float32")

    def _call(
        self,
        func: PrimFunc,
        operands: list[Value],
        constants: Mapping[str, Array],
        reference: Callable[[Mapping[str, Array]], Array],
        output: str,
    ) -> Value:
        name = f"k{len(self._kernels)}"
        kernel, arrays = built_kernel(name, func, self._target, constants)
        self._kernels[name] = kernel
        result = next(param for param in kernel.params if param.is_output)
        if output:
            ref = BufferRef(Region.OUTPUT, len(self._outputs))
            self._outputs.append(Param(output, result.shape, "float32", is_output=True))
        else:
            ref = BufferRef(Region.ARENA, self._arena_end)
            self._arena_end += _up(4 * int(np.prod(result.shape)))
        refs = [*(value.ref for value in operands), *map(self._place, arrays)]
        position = kernel.params.index(result)
        self._steps.append(Step(name, (*refs[:position], ref, *refs[position:])))
        return Value(ref, result.shape, reference)

    def _place(self, array: Array) -> BufferRef:
        placed = PlacedArray(self._weights_end, array)
        self._weights.append(placed)
        self._weights_end += _up(array.nbytes)
        return BufferRef(Region.WEIGHTS, placed.offset)


def random_plan(seed: int, target: CpuTarget) -> tuple[ModelPlan, list[Value]]:
    """Return a plan with random calls, and its results."""
    plan = PlanBuilder("random", target, seed)
    rows = int(plan.rng.integers(1, 9))
    values = [plan.input("x", rows, int(plan.rng.integers(1, 40)))]
    for _ in range(int(plan.rng.integers(1, 7))):
        value = values[plan.rng.integers(len(values))]
        match plan.rng.integers(4):
            case 0:
                values.append(plan.softmax(value))
            case 1:
                values.append(plan.add(value, value))
            case _:
                width = int(plan.rng.integers(1, 70))
                values.append(plan.dense(value, width, relu=bool(plan.rng.integers(2))))
    last, other = values[-1], values[plan.rng.integers(len(values))]
    results = [plan.softmax(last, output="y"), plan.dense(other, 5, output="z")]
    return plan.finish(), results


def classifier(target: CpuTarget | None = None) -> tuple[ModelPlan, Value]:
    """Return a network of two layers for images of 28 x 28 pixels, and its result."""
    plan = PlanBuilder("mnist", target or here())
    image = plan.input("image", 1, 784)
    hidden = plan.dense(image, 16, relu=True)
    result = plan.softmax(plan.dense(hidden, 10), output="probabilities")
    return plan.finish(), result


def parallel_plan(cores: int) -> tuple[ModelPlan, Value]:
    """Return a plan of one sum of two inputs, on several threads."""
    target = here(cores)
    func = ops.add(512, 512)
    sch = Schedule(func)
    sch.parallel(sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0])
    kernel, _ = built_kernel("sum", sch.func, target, {})
    names = ("a", "b", "y")
    params = tuple(Param(n, (512, 512), "float32", is_output=n == "y") for n in names)
    refs = (BufferRef(Region.INPUT, 0), BufferRef(Region.INPUT, 1), BufferRef(Region.OUTPUT, 0))
    plan = ModelPlan(
        "parallel", target, params[:2], params[2:], {"sum": kernel}, (Step("sum", refs),)
    )
    return plan, Value(refs[2], (512, 512), lambda x: x["a"] + x["b"])


def remainder_plan(target: CpuTarget, dtype: DType) -> ModelPlan:
    """Return a plan of `y = a rem b`, rounded towards zero, of five integers."""
    a, b = (te.placeholder((5,), dtype, name) for name in "ab")
    y = te.compute((5,), lambda i: te.truncmod(a[i], b[i]), "y")
    kernel, _ = built_kernel("rem", te.create_prim_func([a, b, y]), target, {})
    params = tuple(Param(n, (5,), dtype, is_output=n == "y") for n in "aby")
    refs = (BufferRef(Region.INPUT, 0), BufferRef(Region.INPUT, 1), BufferRef(Region.OUTPUT, 0))
    steps = (Step("rem", refs),)
    return ModelPlan("remainder", target, params[:2], params[2:], {"rem": kernel}, steps)


def built_kernel(
    name: str, func: PrimFunc, target: CpuTarget, constants: Mapping[str, Array]
) -> tuple[PlannedKernel, list[Array]]:
    """Return a kernel, and the arrays of its last parameters: constants and packed copies."""
    host = here()
    declared = constant_params(func)
    split = backend_of(target).emit_with_constants(func, declared, target, host)
    given = [constants[buffer.name] for buffer in declared]
    copies = [aligned_empty(p.shape, p.dtype) for p in split.packer_params[len(declared) :]]
    for copy in copies:
        copy.fill(0)
    if copies:
        backend = backend_of(host)
        Module(backend.compile(name, split.packer_params, split.packer, host))(*given, *copies)
    direct = [constants[p.name] for p in split.kernel_params if p.name in constants]
    source = split.kernel
    kernel = PlannedKernel(
        name, source.text, split.kernel_params, fixed(source.workspace_bytes), source.num_threads
    )
    return kernel, [*direct, *copies]


def _packed_panels(func: PrimFunc) -> PrimFunc:
    """Return a product that reads its weights from a packed copy."""
    sch = Schedule(func)
    product = sch.get_child_blocks(sch.get_block("root"))[0]
    sch.cache_read(product, "W", "global")
    return sch.func


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
