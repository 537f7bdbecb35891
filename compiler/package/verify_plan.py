"""Check plans: references in range, sizes that fit, no read before a write, no overlap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compiler.executor.params import Param
from compiler.package.plan import (
    ALIGNMENT,
    BufferRef,
    ModelPlan,
    PlacedArray,
    PlannedKernel,
    Region,
    Step,
)

# Symbols of the object are made of it.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class PlanError(ValueError):
    """A plan that is not legal: a bug of what made it."""


class _Written:
    """The bytes of a region that were written so far, as disjoint ranges in order."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, low: int, high: int) -> None:
        """Add the bytes of `low` up to `high`."""
        apart = [r for r in self._ranges if r[1] < low or high < r[0]]
        touched = [r for r in self._ranges if not (r[1] < low or high < r[0])]
        merged = (
            min([low, *(r[0] for r in touched)]),
            max([high, *(r[1] for r in touched)]),
        )
        self._ranges = sorted([*apart, merged])

    def has(self, low: int, high: int) -> bool:
        """Return whether all bytes of `low` up to `high` were written."""
        return low == high or any(r[0] <= low and high <= r[1] for r in self._ranges)


def verify_plan(plan: ModelPlan) -> None:
    """Check that each step of a plan accesses only memory that it may.

    A step may not write what another of its arguments refers to: kernels assume that their buffers
    do not overlap. A kernel that works in place takes its buffer once, as an output that it reads.

    Raises:
        PlanError: With the step, the argument and the reason.
    """
    _check_names(plan)
    _check_weights(plan.weights)
    written = {region: _Written() for region in Region}
    for placed in plan.weights:
        written[Region.WEIGHTS].add(placed.offset, placed.offset + placed.array.nbytes)
    outputs_written: set[int] = set()
    for number, step in enumerate(plan.steps):
        try:
            _check_step(plan, step, written[Region.ARENA], written[Region.WEIGHTS], outputs_written)
        except PlanError as error:
            location = f"step {number} ({step.kernel}{step.label and f', {step.label}'})"
            raise PlanError(f"{plan.name}, {location}: {error}") from None
    for position, output in enumerate(plan.outputs):
        if position not in outputs_written and output.size_bytes:
            raise PlanError(f"{plan.name}: no step writes the output {output.name}")


def _check_names(plan: ModelPlan) -> None:
    for kind, names in (("model", [plan.name]), ("kernel", list(plan.kernels))):
        for name in names:
            if not _IDENTIFIER.fullmatch(name):
                raise PlanError(f"the {kind} has the name {name!r}: expected a C identifier")
    for name, kernel in plan.kernels.items():
        _check_kernel(plan, name, kernel)
    for params in (plan.inputs, plan.outputs):
        names = [param.name for param in params]
        if len(set(names)) != len(names):
            raise PlanError(f"{plan.name}: two inputs or two outputs have one name: {names}")


def _check_kernel(plan: ModelPlan, name: str, kernel: PlannedKernel) -> None:
    if kernel.name != name:
        raise PlanError(f"{plan.name}: the kernel {kernel.name} is listed as {name}")
    if kernel.workspace_bytes < 0 or kernel.num_threads < 1:
        raise PlanError(
            f"{plan.name}: the kernel {name} has a workspace of {kernel.workspace_bytes} bytes"
            f" and {kernel.num_threads} threads"
        )
    outputs = {param.name for param in kernel.params if param.is_output}
    for output in kernel.in_place:
        if output not in outputs:
            raise PlanError(
                f"{plan.name}: the kernel {name} has no output {output} to work in place"
            )


def _check_weights(weights: Iterable[PlacedArray]) -> None:
    end = 0
    for placed in sorted(weights, key=lambda p: (p.offset, p.array.nbytes)):
        if placed.offset < end or placed.offset % ALIGNMENT:
            raise PlanError(
                f"weights at {placed.offset}: expected a multiple of {ALIGNMENT} from {end} on,"
                " the end of the array before"
            )
        if not placed.array.flags.c_contiguous:
            raise PlanError(f"weights at {placed.offset} are not contiguous")
        end = placed.offset + placed.array.nbytes


def _check_step(
    plan: ModelPlan, step: Step, arena: _Written, weights: _Written, outputs: set[int]
) -> None:
    if step.kernel not in plan.kernels:
        raise PlanError("the plan has no such kernel")
    kernel = plan.kernels[step.kernel]
    params = kernel.params
    if len(step.arguments) != len(params):
        names = ", ".join(param.name for param in params)
        raise PlanError(f"{len(step.arguments)} arguments for the parameters {names}")
    for param, ref in zip(params, step.arguments, strict=True):
        _check_range(plan, param, ref)
        if not param.is_output or param.name in kernel.in_place:
            _check_is_written(param, ref, arena, weights, outputs)
    _check_apart(params, step.arguments)
    for param, ref in zip(params, step.arguments, strict=True):
        if param.is_output and ref.region is Region.OUTPUT:
            outputs.add(ref.offset)
        elif param.is_output:
            arena.add(ref.offset, ref.offset + param.size_bytes)


def _check_range(plan: ModelPlan, param: Param, ref: BufferRef) -> None:
    """Refuse a reference that is out of its region, or written where that is read-only."""
    if param.is_output and ref.region in (Region.INPUT, Region.WEIGHTS):
        raise PlanError(f"{param.name} is written: the region {ref.region.value} is read-only")
    size = param.size_bytes
    if ref.region in (Region.INPUT, Region.OUTPUT):
        arrays = plan.inputs if ref.region is Region.INPUT else plan.outputs
        if not 0 <= ref.offset < len(arrays):
            raise PlanError(f"{param.name} is {ref.region.value} {ref.offset} of {len(arrays)}")
        array = arrays[ref.offset]
        if array.size_bytes != size:
            raise PlanError(
                f"{param.name} has {size} bytes: the {ref.region.value} {array.name} has"
                f" {array.size_bytes}"
            )
        return
    limit = plan.arena_bytes if ref.region is Region.ARENA else plan.weights_bytes
    if not 0 <= ref.offset <= limit - size:
        raise PlanError(
            f"{param.name} has {size} bytes at {ref.offset}: the region {ref.region.value}"
            f" has {limit}"
        )
    # A slice of a larger array may begin inside a cache line: kernels need whole elements alone.
    if ref.offset % param.element_bytes:
        raise PlanError(f"{param.name} begins at {ref.offset}, between elements of {param.dtype}")


def _check_is_written(
    param: Param, ref: BufferRef, arena: _Written, weights: _Written, outputs: set[int]
) -> None:
    size = param.size_bytes
    if ref.region is Region.ARENA and not arena.has(ref.offset, ref.offset + size):
        raise PlanError(f"{param.name} reads the arena at {ref.offset}, which no step has written")
    if ref.region is Region.WEIGHTS and not weights.has(ref.offset, ref.offset + size):
        raise PlanError(f"{param.name} reads weights at {ref.offset} beyond the end of an array")
    if ref.region is Region.OUTPUT and ref.offset not in outputs:
        raise PlanError(f"{param.name} reads output {ref.offset}, which no step has written")


def _check_apart(params: Sequence[Param], refs: Sequence[BufferRef]) -> None:
    """Refuse a written argument that shares memory with another one."""
    for position, (param, ref) in enumerate(zip(params, refs, strict=True)):
        for other, (read, at) in enumerate(zip(params, refs, strict=True)):
            if param.is_output and other != position and _overlap(param, ref, read, at):
                raise PlanError(
                    f"{param.name} is written and overlaps {read.name}:"
                    " expected separate memory, or one parameter"
                )


def _overlap(param: Param, ref: BufferRef, other: Param, at: BufferRef) -> bool:
    if ref.region is not at.region:
        return False
    if ref.region in (Region.INPUT, Region.OUTPUT):
        return ref.offset == at.offset
    low, high = ref.offset, ref.offset + param.size_bytes
    return at.offset < high and low < at.offset + other.size_bytes
