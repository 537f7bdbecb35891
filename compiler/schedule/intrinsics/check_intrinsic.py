"""Check that the implementation of a tensor intrinsic computes what its description says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from compiler.ir.analysis.regions import access_regions
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.foreign import foreign_calls
from compiler.ir.core.llvm_calls import LlvmCallProblem
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    For,
    IntImm,
    MatchBuffer,
    Range,
    Stmt,
    Store,
    make_buffer,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import Array, EvaluationError, evaluate
from compiler.ir.interpret.oracle.oracle import OracleError, interpret
from compiler.ir.interpret.tolerance import tolerance
from compiler.ir.verify.verify import VerifyError, verify
from compiler.schedule.tree.tree import children

Run: TypeAlias = Callable[[PrimFunc, Mapping[str, Array]], dict[str, Array]]

Kind: TypeAlias = Literal["small", "any", "extreme"]
"""Of values: small whole numbers, whatever a type holds, its least and greatest numbers."""

_TRIALS: tuple[Kind, ...] = ("small", "any", "extreme", "small", "any", "extreme")
# Up to so many stores each trial is done one scalar at a time, in the middle of larger buffers; up
# to so many the first one is. The oracle does the others: it is fast, but knows nothing of how a
# view lies in memory.
_FEW = 1 << 10
_SOME = 1 << 13


def intrinsic_problem(desc: PrimFunc, impl: PrimFunc) -> str | None:
    """Return why two programs are not an intrinsic; None if they have the same effect."""
    problem = _parameter_problem(desc, impl) or _region_problem(desc)
    if foreign_calls(desc.body):
        problem = "its description calls functions that have no meaning here"
    if problem is not None:
        return problem
    hosts = _hosted(desc, impl), _hosted(impl, impl)
    for role, host in zip(("description", "implementation"), hosts, strict=True):
        try:
            verify(host)
        except VerifyError as error:
            return f"its {role} is no legal program: {error.message}"
    if foreign_calls(impl.body):
        return None  # a program that calls them is never built
    allowed = tolerance(desc)
    work = max(_num_stores(desc.body), _num_stores(impl.body))
    try:
        for seed, kind in enumerate(_TRIALS):
            if work <= _FEW or (work <= _SOME and seed == 0):
                problem = _result_problem(impl, hosts, evaluate, (seed, kind), allowed)
            else:
                problem = _result_problem(impl, (desc, impl), interpret, (seed, kind), allowed)
            if problem is not None:
                return problem
    except (EvaluationError, LlvmCallProblem, OracleError) as error:
        return f"it can't be run here to be checked: {error}"
    return None


def _result_problem(
    impl: PrimFunc,
    pair: tuple[PrimFunc, PrimFunc],
    run: Run,
    trial: tuple[int, Kind],
    allowed: float,
) -> str | None:
    """Run two programs on the same values and compare their results."""
    inputs = _values(pair[0], *trial)
    results: list[list[Array]] = []
    for func in pair:
        named = {buffer.name: array for buffer, array in zip(func.buffers, inputs, strict=True)}
        outputs = run(func, named)
        results.append([outputs.get(name, array) for name, array in named.items()])
    for buffer, expected, actual in zip(impl.buffers, *results, strict=True):
        # Sums of whole numbers are exact, so their order does not matter.
        problem = _difference(buffer, expected, actual, allowed if trial[1] == "any" else 0.0)
        if problem is not None:
            return problem
    return None


def _num_stores(stmt: Stmt) -> int:
    """Return the maximum number of elements that a statement stores."""
    match stmt:
        case For(extent=extent, body=body):
            return (extent.value if isinstance(extent, IntImm) else _SOME) * _num_stores(body)
        case Store(_, indices, value):
            return max(lanes_of(part) for part in (*indices, value))
        case _:
            return sum(_num_stores(below) for below in children(stmt))


def _parameter_problem(desc: PrimFunc, impl: PrimFunc) -> str | None:
    for role, func in (("description", desc), ("implementation", impl)):
        fixed = [b for b in func.buffers if all(isinstance(extent, IntImm) for extent in b.shape)]
        if len(fixed) < len(func.params):
            return f"its {role} has parameters that are no buffers of a fixed shape"
    if len(desc.params) != len(impl.params):
        counts = f"{len(impl.params)} parameter(s), its description {len(desc.params)}"
        return f"its implementation has {counts}"
    for ours, theirs in zip(desc.buffers, impl.buffers, strict=True):
        kinds = [(b.dtype, static_shape(b), b.scope) for b in (ours, theirs)]
        if kinds[0] != kinds[1]:
            shown = " and ".join(
                f"{dtype}{list(shape)} in {scope}" for dtype, shape, scope in kinds
            )
            return f"parameters {ours.name} and {theirs.name} differ: {shown}"
    return None


def _region_problem(desc: PrimFunc) -> str | None:
    """Check that a description accesses all of its buffers: each stands for a whole box."""
    if desc.root.alloc_buffers or desc.root.match_buffers:
        return "its description has buffers besides its parameters"
    reads, writes = access_regions(desc.root.body)
    touched = {region.buffer: region for region in (*writes, *reads)}
    for buffer in desc.buffers:
        shape = static_shape(buffer)
        if buffer not in touched or not _is_whole(touched[buffer], shape):
            return f"its description does not touch all of {buffer.name}: {list(shape)}"
    return None


def _is_whole(region: BufferRegion, shape: tuple[int, ...]) -> bool:
    return all(
        isinstance(r.minimum, IntImm)
        and isinstance(r.extent, IntImm)
        and (r.minimum.value, r.extent.value) == (0, size)
        for r, size in zip(region.region, shape, strict=True)
    )


def _hosted(func: PrimFunc, impl: PrimFunc) -> PrimFunc:
    """Return a program that runs another one on boxes in the middle of larger buffers.

    The boxes have the offsets and strides that the implementation requires.
    """
    large: list[Buffer] = []
    boxes: list[BufferRegion] = []
    for buffer, impl_buffer in zip(func.buffers, impl.buffers, strict=True):
        shape = static_shape(buffer)
        sizes, corner = _surroundings(impl_buffer)
        host = make_buffer(impl_buffer.name, sizes, buffer.dtype, buffer.scope)
        box = tuple(Range(IntImm(low), IntImm(n)) for low, n in zip(corner, shape, strict=True))
        large.append(host)
        boxes.append(BufferRegion(host, box))
    root = func.root
    matches = tuple(map(MatchBuffer, func.buffers, boxes))
    block = Block(
        "intrinsic",
        (),
        tuple(boxes),
        tuple(boxes),
        root.body,
        alloc_buffers=root.alloc_buffers,
        match_buffers=(*matches, *root.match_buffers),
    )
    outer = Block("root", (), (), (), BlockRealize((), TRUE, block))
    return PrimFunc(func.name, tuple(large), BlockRealize((), TRUE, outer))


def _surroundings(buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a larger buffer, and the offset of a view in it.

    The offset is a multiple of the promised one; fixed strides leave less room, or none.
    """
    sizes: list[int] = []
    corner: list[int] = []
    stride = 1
    for axis, n in reversed(list(enumerate(static_shape(buffer)))):
        step = max(1, buffer.offset_factor) if not sizes else 1
        size = -(-(n + 2 * step) // step) * step
        outer = buffer.strides[axis - 1] if buffer.strides and axis else None
        if isinstance(outer, IntImm):
            size = max(n, outer.value // stride)
        sizes.append(size)
        corner.append(step if size >= n + step else 0)
        stride *= size
    return tuple(reversed(sizes)), tuple(reversed(corner))


def _values(func: PrimFunc, seed: int, kind: Kind) -> list[Array]:
    """Return values for all buffers."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for buffer in func.buffers:
        shape, dtype = static_shape(buffer), buffer.dtype
        low, high = _limits(dtype)
        if kind == "small":
            values: Array = rng.integers(max(low, -4), min(high, 4) + 1, shape)
        elif kind == "extreme":
            values = rng.choice([low, high], shape)
        elif is_float(dtype):
            values = rng.standard_normal(shape)
        else:
            values = rng.integers(low, high + 1, shape)
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def _limits(dtype: DType) -> tuple[int, int]:
    """Return the range of inputs of a type for which sums lose no digits."""
    if is_float(dtype) or dtype == "bool":
        return (0, 1) if dtype == "bool" else (-2, 2)
    kind = np.iinfo(dtype)
    return max(int(kind.min), -(2**20)), min(int(kind.max), 2**20)


def _difference(buffer: Buffer, expected: Array, actual: Array, error: float) -> str | None:
    """Return where two results differ by more than a share of their largest magnitude."""
    if is_float(buffer.dtype):
        a, b = expected.astype("float64"), actual.astype("float64")
        scale = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
        same = np.isclose(a, b, rtol=0.0, atol=error * scale, equal_nan=True)
    else:
        same = expected == actual
    if same.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~same)[0])
    values = f"{actual[index]} where its description gives {expected[index]}"
    return f"its implementation makes an element of {buffer.name} {values}"
