"""Build a kernel, or take it from the remote cache, where an equal build stored it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import loopwright
from compiler.driver import compile_kernel, toolchain
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.runtime.kernel_params import params_of
from compiler.schedule.trace.trace import Trace
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from loopwright.kernels.remote_cache import remote_cache

_DEFAULT = Trace(())


def build_kernel(
    func: PrimFunc,
    target: Target,
    trace: Trace = _DEFAULT,
    accepts: Callable[[Artifact], bool] = lambda _: True,
) -> Artifact:
    """Return the kernel of a function with a schedule, from the remote cache or built here.

    Args:
        func: The function.
        target: The machine.
        trace: The schedule, by default none.
        accepts: Returns whether a kernel of the cache is the requested one.

    Raises:
        BuildError: If it can't be built.
        ScheduleError: If the schedule does not apply.
        LoopwrightError: If the environment describes the remote cache wrongly.
    """
    cache = remote_cache()
    if cache is None:
        return build_here(func, target, trace)
    key = _key(func, target, trace)
    content = cache.get(key)
    cached = None if content is None else _artifact_of(content, func, target)
    if cached is not None and accepts(cached):
        return cached
    artifact = build_here(func, target, trace)
    if content is None:
        cache.put(key, artifact.to_bytes())
    return artifact


def build_here(func: PrimFunc, target: Target, trace: Trace) -> Artifact:
    """Return the kernel of a function with a schedule, built by this process.

    Raises:
        BuildError: If it can't be built.
        ScheduleError: If the schedule does not apply.
    """
    return compile_kernel(trace.apply_to(func) if trace.instructions else func, target)


def _key(func: PrimFunc, target: Target, trace: Trace) -> str:
    """Return the digest of all that the bytes of a kernel depend on."""
    inputs = {
        "script": script(func),
        "trace": trace.to_json(),
        "target": target.name,
        "machine": _machine(target),
        "toolchain": toolchain(target.kind),
        "loopwright": loopwright.__version__,
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _machine(target: Target) -> str:
    """Return what code for a target requires: hosts of one name may differ in features."""
    return f"{target.triple} {target.features}" if isinstance(target, CpuTarget) else ""


def _artifact_of(content: bytes, func: PrimFunc, target: Target) -> Artifact | None:
    """Return the kernel in an entry; None if it is not one of the function for the target."""
    try:
        artifact = Artifact.from_bytes(content)
    except ArtifactError:
        return None
    expected = {(param.name, param.shape, param.dtype) for param in params_of(func.buffers, ())}
    params = {(p.name, p.shape, p.dtype) for p in (*artifact.arguments, *artifact.constants)}
    # Which registered functions a kernel calls is decided by whom it runs for, not by a cache.
    if artifact.functions:
        return None
    is_of_target = (artifact.target, artifact.toolchain) == (target.name, toolchain(target.kind))
    return artifact if is_of_target and params == expected else None
