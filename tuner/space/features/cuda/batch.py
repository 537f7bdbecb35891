"""The shared input of the groups of features of GPUs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.cuda import CudaTarget
from tuner.space.features.cuda.chain_kernel import ChainKernel
from tuner.space.features.cuda.chain_time import ChainTime
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.roofline import LAUNCH_SECS, KernelTime
from tuner.space.features.cuda.tensor_kernel import TensorKernel, TensorTime
from tuner.space.features.cuda.warpgroup_kernel import WarpgroupKernel, WarpgroupTime
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.chain_tile import ChainTile
from tuner.space.tables.kernel_blocks import KernelBlocks
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats, TiledNest
from tuner.space.tables.sketch import Sketch
from tuner.space.tables.tensor_tile import WarpgroupTile


class CudaBatch(CandidateBatch):
    """N candidates of a sketch for a GPU; each nest is a kernel, or a part of one."""

    def __init__(self, sketch: Sketch, choices: Ints, target: CudaTarget) -> None:
        super().__init__(sketch, choices, target)
        self.rates = GpuRates.of(target)
        facts = [nest.facts for nest in sketch.nests]
        launches = [_blocks_of(sketch, block.name) for block in facts]
        on_chip = frozenset(
            block.write.buffer
            for block, launch in zip(facts, launches, strict=True)
            if launch.keeps(block.name)
        )
        self.kernels = [
            _kernel_class(tables.nest)(
                tables,
                self.values,
                tuple(c for c in sketch.copies if c.is_read_by(tables.nest.facts.name)),
                on_chip,
                target.limits,
            )
            for tables in self.tables
        ]
        for kernel, launch in zip(self.kernels, launches, strict=True):
            kernel.parts = [
                other
                for other, other_launch in zip(self.kernels, launches, strict=True)
                if other_launch == launch
            ]

    @property
    def kernel(self) -> SketchKernel:
        """Return the kernel of the main nest."""
        return self.kernels[0]

    @cached_property
    def times(self) -> list[KernelTime]:
        """Return the estimated times of the kernels."""
        return [_time_of(kernel, self.rates) for kernel in self.kernels]

    @property
    def time(self) -> KernelTime:
        """Return the estimated time of the main kernel."""
        return self.times[0]

    @cached_property
    def secs(self) -> Floats:
        """Return the estimated time of all kernels in seconds, with that of their launches."""
        launches = np.full(len(self), LAUNCH_SECS * self.num_launches)
        return sum((time.total for time in self.times), launches)

    @property
    def num_launches(self) -> int:
        """Return the number of kernels."""
        return len({id(kernel.parts[0]) for kernel in self.kernels})


def _kernel_class(nest: TiledNest) -> type[SketchKernel]:
    match nest.tensor_tile:
        case None:
            return SketchKernel
        case WarpgroupTile():
            return WarpgroupKernel
        case ChainTile():
            return ChainKernel
        case _:
            return TensorKernel


def _time_of(kernel: SketchKernel, rates: GpuRates) -> KernelTime:
    match kernel:
        case WarpgroupKernel():
            return WarpgroupTime(kernel, rates)
        case ChainKernel():
            return ChainTime(kernel, rates)
        case TensorKernel():
            return TensorTime(kernel, rates)
        case _:
            return KernelTime(kernel, rates)


def _blocks_of(sketch: Sketch, block: str) -> KernelBlocks:
    """Return the kernel of a block; one of its own if the sketch does not show it."""
    return next((k for k in sketch.kernels if k.has(block)), KernelBlocks((block,)))
