"""Whether the implementation of a tensor intrinsic does what its description says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler.ir.dtypes import is_float
from compiler.ir.evaluate import Array, EvaluationError, evaluate
from compiler.ir.llvm_calls import LlvmCallProblem
from compiler.ir.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    IntImm,
    MatchBuffer,
    PrimFunc,
    Range,
    make_buffer,
    static_shape,
)
from compiler.ir.regions import access_regions
from compiler.ir.specialize import symbolic_vars
from compiler.ir.tolerance import tolerance
from compiler.ir.verify import VerifyError, verify

_SEEDS = 3
# What a description may take to run here, one scalar at a time: a second or two.
_MAX_ELEMENTS = 1 << 16


def why_not_same(desc: PrimFunc, impl: PrimFunc) -> str | None:
    """Return why two programs are no intrinsic; None if they do the same to their buffers."""
    problem = _why_not_alike(desc, impl) or _why_not_whole(desc)
    if problem is not None:
        return problem
    error = tolerance(desc)
    hosts = _hosted(desc, desc), _hosted(impl, desc)
    for seed in range(2 * _SEEDS):
        # Whole numbers add up without rounding, so at first the order of a sum does not count.
        is_whole = seed < _SEEDS
        inputs = _values(hosts[0], seed, small=is_whole)
        try:
            expected, got = (evaluate(host, inputs) for host in hosts)
        except (EvaluationError, LlvmCallProblem) as problem_:
            return f"it can't be run here to be checked: {problem_}"
        problem = _difference(impl, expected, got, 0.0 if is_whole else error)
        if problem is not None:
            return problem
    return None


def _why_not_alike(desc: PrimFunc, impl: PrimFunc) -> str | None:
    for what, func in (("description", desc), ("implementation", impl)):
        if len(func.buffers) < len(func.params) or symbolic_vars(func):
            return f"its {what} has parameters that are no buffers of a fixed shape"
        try:
            verify(func)
        except VerifyError as error:
            return f"its {what} is no legal program: {error.message}"
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


def _why_not_whole(desc: PrimFunc) -> str | None:
    """Check that a description touches all of its buffers: each stands for a whole box."""
    if desc.root.alloc_buffers or desc.root.match_buffers:
        return "its description has buffers besides its parameters"
    reads, writes = access_regions(desc.root.body)
    touched = {region.buffer: region for region in (*writes, *reads)}
    total = 0
    for buffer in desc.buffers:
        shape = static_shape(buffer)
        total += int(np.prod(shape))
        if buffer not in touched or not _is_whole(touched[buffer], shape):
            return f"its description does not touch all of {buffer.name}: {list(shape)}"
    if total > _MAX_ELEMENTS:
        return f"its buffers have {total} elements: expected {_MAX_ELEMENTS} at most"
    return None


def _is_whole(region: BufferRegion, shape: tuple[int, ...]) -> bool:
    return all(
        isinstance(r.minimum, IntImm)
        and isinstance(r.extent, IntImm)
        and (r.minimum.value, r.extent.value) == (0, size)
        for r, size in zip(region.region, shape, strict=True)
    )


def _hosted(func: PrimFunc, desc: PrimFunc) -> PrimFunc:
    """Return a program that runs another one on boxes in the middle of larger buffers."""
    large: list[Buffer] = []
    matches: list[MatchBuffer] = []
    for buffer, named in zip(func.buffers, desc.buffers, strict=True):
        shape = static_shape(buffer)
        margins = _margins(buffer)
        sizes = tuple(-(-(n + 2 * m) // m) * m for n, m in zip(shape, margins, strict=True))
        host = make_buffer(named.name, sizes, buffer.dtype, buffer.scope)
        corner = zip(margins, shape, strict=True)
        box = tuple(Range(IntImm(margin), IntImm(n)) for margin, n in corner)
        large.append(host)
        matches.append(MatchBuffer(buffer, BufferRegion(host, box)))
    root = func.root
    block = Block(
        "intrinsic",
        (),
        (),
        (),
        root.body,
        alloc_buffers=root.alloc_buffers,
        match_buffers=(*matches, *root.match_buffers),
    )
    outer = Block("root", (), (), (), BlockRealize((), TRUE, block))
    return PrimFunc(func.name, tuple(large), BlockRealize((), TRUE, outer))


def _margins(buffer: Buffer) -> list[int]:
    """Return how far into a larger buffer a view begins: it may promise a multiple of something."""
    margins = [1] * len(buffer.shape)
    if margins:
        margins[-1] = max(1, buffer.offset_factor)
    return margins


def _values(func: PrimFunc, seed: int, *, small: bool) -> dict[str, Array]:
    """Return values for all buffers: small whole numbers, or all that a type can hold."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for buffer in func.buffers:
        shape, dtype = static_shape(buffer), buffer.dtype
        if dtype == "bool":
            values: Array = rng.integers(0, 2, shape)
        elif small:
            values = rng.integers(-4 if dtype[0] != "u" else 0, 5, shape)
        elif is_float(dtype):
            values = rng.standard_normal(shape)
        else:
            kind = np.iinfo(dtype)
            values = rng.integers(max(kind.min, -(2**20)), min(kind.max, 2**20) + 1, shape)
        found[buffer.name] = values.astype(dtype)
    return found


def _difference(
    impl: PrimFunc, expected: Mapping[str, Array], got: Mapping[str, Array], error: float
) -> str | None:
    for buffer, (name, wanted) in zip(impl.buffers, expected.items(), strict=True):
        if wanted.dtype.kind in "fV":
            a, b = wanted.astype("float64"), got[name].astype("float64")
            scale = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
            same = np.isclose(a, b, rtol=0.0, atol=error * scale, equal_nan=True)
        else:
            same = wanted == got[name]
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            inside = ", ".join(
                str(i - margin) for i, margin in zip(place, _margins(buffer), strict=True)
            )
            values = f"{got[name][place]} where its description gives {wanted[place]}"
            return f"its implementation makes {name}[{inside}] {values}"
    return None
