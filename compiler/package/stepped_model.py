"""A plan with each kernel loaded on its own: to time steps, and to see the arena between them.

It computes what the package of the plan computes, more slowly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.backend import SourceCode, backend_of
from compiler.backends.module import Module
from compiler.executor.memory import aligned_empty, aligned_zeros
from compiler.executor.params import Param
from compiler.package.plan import BufferRef, ModelPlan, PlannedKernel, Region
from compiler.target.cpu import CpuTarget

Array = NDArray[Any]


class SteppedModel:
    """A loaded plan whose steps can be called one by one, in their order.

    Args:
        plan: A legal plan for this host.

    Attributes:
        arena: The memory of values between kernels, as bytes.
    """

    def __init__(self, plan: ModelPlan) -> None:
        self.plan = plan
        self.arena = aligned_empty((plan.arena_bytes,), "uint8")
        self._weights = aligned_zeros((plan.weights_bytes,), "uint8")
        for placed in plan.weights:
            end = placed.offset + placed.array.nbytes
            self._weights[placed.offset : end] = _bytes(placed.array)
        self._modules = {name: _load(kernel, plan.target) for name, kernel in plan.kernels.items()}

    def bind(
        self, inputs: Mapping[str, Array]
    ) -> tuple[Sequence[Callable[[], None]], dict[str, Array]]:
        """Return a function for each step, and the arrays that hold the results afterwards.

        Args:
            inputs: An array for each input, by name, of the plan's shape and type.
        """
        outputs = {
            param.name: aligned_empty(param.shape, param.dtype) for param in self.plan.outputs
        }
        regions = {
            Region.INPUT: [np.ascontiguousarray(inputs[p.name]) for p in self.plan.inputs],
            Region.OUTPUT: list(outputs.values()),
        }

        def array(param: Param, ref: BufferRef) -> Array:
            if ref.region in regions:
                content = _bytes(regions[ref.region][ref.offset])
            else:
                memory = self.arena if ref.region is Region.ARENA else self._weights
                size = math.prod(param.shape) * np.dtype(param.dtype).itemsize
                content = memory[ref.offset : ref.offset + size]
            return content.view(param.dtype).reshape(param.shape)

        calls = []
        for step in self.plan.steps:
            params = self.plan.kernels[step.kernel].params
            calls.append(self._modules[step.kernel].bind(*map(array, params, step.arguments)))
        return calls, outputs


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _load(kernel: PlannedKernel, target: CpuTarget) -> Module:
    source = SourceCode(kernel.text, kernel.workspace_bytes, kernel.num_threads)
    return Module(backend_of(target).compile(kernel.name, kernel.params, source, target))
