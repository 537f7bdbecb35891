"""From a program to a kernel: lower, generate code, compile, load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.machine_code import compile_object, llvm_version
from compiler.backends.cpu.codegen.module import LlvmModule, emit_module
from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.analysis.specialize import symbolic_problem
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import (
    Buffer,
    IntImm,
    Load,
    Stmt,
    static_shape,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.visit import replace_buffers, walk
from compiler.ir.verify.verify import verify, verify_but_for_races
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.keywords import suggests_keywords
from compiler.passes.common.align_buffers import alignments_of
from compiler.passes.common.check_indices import check_indices
from compiler.passes.common.compact_buffers import compact_buffers, private_buffers
from compiler.passes.common.error import LoweringError
from compiler.passes.common.mark_pipelines import mark_pipelines
from compiler.passes.common.pipeline_loops import pipeline_loops
from compiler.passes.common.realize_blocks import NOTHING, Realized, realize_blocks
from compiler.passes.common.thread_loops import has_threads
from compiler.passes.common.tile_buffers import tile_buffers, tiles_of
from compiler.passes.cpu.hoist_constants import constant_copies, split_copies, with_room
from compiler.passes.cpu.hoist_loads import hoist_loads
from compiler.passes.cpu.promote_accumulators import promote_accumulators
from compiler.passes.cpu.reduce_in_lanes import reduce_in_lanes
from compiler.passes.cpu.unswitch_guards import unswitch_guards
from compiler.passes.cpu.unswitch_paddings import unswitch_paddings
from compiler.passes.cpu.widen_accumulators import widen_accumulators
from compiler.passes.threads.insert_barriers import insert_barriers
from compiler.passes.threads.separate_threads import separate_threads
from compiler.passes.threads.split_threads import split_threads
from compiler.passes.threads.unify_threads import unify_threads
from compiler.runtime.artifact import Artifact, Param
from compiler.runtime.module import Module, aligned_empty
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target

CODEGEN_VERSION = 3

# Programs that were verified, by their structural hash; the oldest goes first.
_MOST_VERIFIED = 1024
_verified: dict[str, None] = {}


class Scheduled(Protocol):
    """What holds a scheduled program: a `Schedule`."""

    @property
    def func(self) -> PrimFunc:
        """The program as it stands."""
        ...


class BuildError(Exception):
    """A program for which no kernel can be built, and why."""


def lower(func: PrimFunc, target: str | Target = "cpu") -> Stmt:
    """Turn a scheduled program into loops over small buffers, ready for code generation.

    Raises:
        LoweringError: If there is no such program: variables are open, or threads can't run so.
        TargetError: If the target is unknown.
        TypeError: If `func` is no program.
    """
    given: object = func
    if not isinstance(given, PrimFunc):
        raise TypeError(f"expected a PrimFunc to lower, not a {type(given).__name__}")
    body = _prepared(func)
    goal = CpuTarget.of(target if isinstance(target, Target) else Target(target))
    return _finished(_lower_threads(body) if has_threads(body) else _lower_loops(body), goal)


def lower_split(
    func: PrimFunc, constants: set[Buffer], target: Target
) -> tuple[tuple[Buffer, ...], Stmt, Stmt]:
    """Lower what makes copies of constants, and what finds them made, apart from each other.

    Returns:
        The copies, what makes them, and the rest.

    Raises:
        LoweringError: As `lower` does.
    """
    body = _prepared(func)
    if has_threads(body):
        return (), NOTHING, _finished(_lower_threads(body), CpuTarget.of(target))
    realized, tiled = _realized(body)
    copies = tuple(tiled.get(copy, copy) for copy in constant_copies(body, constants))
    first, rest = split_copies(realized.stmt, set(copies))
    if {n.buffer for n in walk(first) if isinstance(n, Load)} - constants - set(copies):
        copies, first, rest = (), NOTHING, realized.stmt
    room = with_room(copies, rest)
    parts = (
        _compacted(replace(realized, stmt=replace_buffers(stmt, room)), body)
        for stmt in (first, rest)
    )
    made, left = (_finished(stmt, CpuTarget.of(target)) for stmt in parts)
    return tuple(room.get(copy, copy) for copy in copies), made, left


def _prepared(func: PrimFunc) -> Stmt:
    _check_parameters(func)
    return mark_pipelines(resolve_views(check_indices(func.body)))


def _finished(stmt: Stmt, target: CpuTarget) -> Stmt:
    register_file_bytes = target.num_vector_registers * target.vector_bits // 8
    stmt = promote_accumulators(reduce_in_lanes(stmt), register_file_bytes)
    whole = unswitch_guards(unswitch_paddings(stmt))
    if whole is not stmt:
        # Guards may have stood in the way of accumulators: of whole tiles, no more.
        stmt = promote_accumulators(whole, register_file_bytes)
    return hoist_loads(widen_accumulators(stmt))


def _lower_loops(body: Stmt) -> Stmt:
    return _compacted(_realized(body)[0], body)


def _realized(body: Stmt) -> tuple[Realized, dict[Buffer, Buffer]]:
    """Return a program without blocks, its buffers in panels, and those by what they were."""
    realized = realize_blocks(body)
    stmt, tiled = tile_buffers(realized.stmt, tiles_of(body))
    carried = {tiled.get(buffer, buffer): loops for buffer, loops in realized.carried.items()}
    return Realized(stmt, carried), tiled


def _compacted(realized: Realized, body: Stmt) -> Stmt:
    return pipeline_loops(compact_buffers(realized.stmt, realized.carried, alignments_of(body)))


def _lower_threads(body: Stmt) -> Stmt:
    """Lower a program of threads to loops that run them one after another."""
    aligned = alignments_of(body)
    body, unified = unify_threads(body)
    realized = separate_threads(realize_blocks(body), unified)
    stmt = compact_buffers(realized.stmt, realized.carried, aligned)
    stmt = pipeline_loops(stmt)
    private = {b for b, thread in private_buffers(stmt).items() if thread is not None}
    return split_threads(insert_barriers(stmt, private), private)


def emit_llvm(func: PrimFunc, target: Target) -> LlvmModule:
    """Return the LLVM IR of a program.

    Raises:
        BuildError: If it can't be lowered, or is too large once expanded.
    """
    try:
        return emit_module(func.buffers, lower(func, target), CpuTarget.of(target))
    except (CodegenError, LoweringError) as error:
        raise BuildError(f"{func.name}: {error}") from error


def compile_artifact(
    program: PrimFunc | IRModule | Scheduled, target: str | Target = "cpu"
) -> Artifact:
    """Compile a program, scheduled or not, for a target that need not be this host.

    Raises:
        BuildError: If it is not legal, or can't be compiled.
        TargetError: If the target is unknown.
        TypeError: If `program` is none.
    """
    func = _legal(program)
    goal = CpuTarget.of(target if isinstance(target, Target) else Target(target))
    return _compiled(func, goal)[0]


def _compiled(func: PrimFunc, goal: CpuTarget) -> tuple[Artifact, str]:
    """Return a kernel, and the LLVM IR that it was compiled from."""
    module = emit_llvm(func, goal)
    artifact = _artifact(func.name, func.buffers, stored_buffers(func.body), module, goal)
    return artifact, module.text


def _legal(program: PrimFunc | IRModule | Scheduled) -> PrimFunc:
    """Return what is to be compiled; it is verified first, once a program.

    A kernel must keep to its arrays, whatever its program's source. The order of accesses of a
    schedule is not checked again: its primitives preserve it.

    Raises:
        BuildError: If it is not legal.
    """
    func = _function(program)
    is_schedule = not isinstance(program, PrimFunc | IRModule)
    try:
        key = f"{structural_hash(func)} {is_schedule}"
        if key not in _verified:
            (verify_but_for_races if is_schedule else verify)(func)
    except ValueError as error:  # VerifyError is one; the hash knows variables without a definition
        raise BuildError(f"{func.name} is not a legal program: {error}") from error
    if key not in _verified:
        while len(_verified) >= _MOST_VERIFIED:
            _verified.pop(next(iter(_verified)), None)
        _verified[key] = None
    return func


def _artifact(
    name: str,
    buffers: tuple[Buffer, ...],
    written: set[Buffer],
    module: LlvmModule,
    goal: CpuTarget,
) -> Artifact:
    params = tuple(Param(b.name, static_shape(b), b.dtype, is_output=b in written) for b in buffers)
    return Artifact(
        name=name,
        target=goal.name,
        triple=goal.triple,
        features=goal.features,
        toolchain=toolchain(),
        params=params,
        workspace_bytes=module.workspace_bytes,
        num_threads=module.num_threads,
        object_code=compile_object(module.text, goal),
    )


@suggests_keywords
def build(
    program: PrimFunc | IRModule | Scheduled,
    target: str | Target = "cpu",
    const_params: Mapping[str, Any] | None = None,
) -> Module:
    """Compile a program and load it.

    Args:
        const_params: Arrays for some of the parameters, by name, which never change, such as
            weights: the module takes the others alone. What the schedule copies of constants only,
            into packed panels say, is copied now and not in each call.

    Raises:
        BuildError: If it is not legal, can't be compiled, or a constant is no parameter, or is
            written.
        TargetError: If the target is unknown.
        TypeError: If `program` is none.
        ArtifactError: If this host can't run code for the target.
        ArgumentError: If a constant is no array of the parameter's shape and type.
    """
    func = _legal(program)
    goal = CpuTarget.of(target if isinstance(target, Target) else Target(target))
    if not const_params:
        artifact, source = _compiled(func, goal)
        return Module(artifact, source=source)
    return _with_constants(func, goal, const_params)


def _with_constants(func: PrimFunc, goal: CpuTarget, arrays: Mapping[str, Any]) -> Module:
    constants = {buffer for buffer in func.buffers if buffer.name in arrays}
    written = stored_buffers(func.body)
    unknown = arrays.keys() - {buffer.name for buffer in constants}
    changed = {buffer.name for buffer in constants & written}
    if unknown or changed:
        names = ", ".join(sorted(unknown or changed))
        known = ", ".join(buffer.name for buffer in func.buffers if buffer not in written)
        reason = "the program writes it" if changed else "there is no such parameter"
        raise BuildError(f"{func.name}: const_params: {names}: {reason}; it reads {known}")
    try:
        copies, made, left = lower_split(func, constants, goal)
        used = {node.buffer for node in walk(left) if isinstance(node, Load)}
        fixed = tuple(b for b in func.buffers if b in constants)
        kept = tuple(b for b in fixed if b in used)
        taken = tuple(b for b in func.buffers if b not in constants)
        packers = emit_module((*fixed, *copies), made, goal)
        kernel = emit_module((*taken, *kept, *copies), left, goal)
    except (CodegenError, LoweringError) as error:
        raise BuildError(f"{func.name}: {error}") from error
    packer = Module(_artifact(func.name, (*fixed, *copies), set(copies), packers, goal))
    packed = [aligned_empty(static_shape(b), b.dtype) for b in copies]
    for array in packed:
        array.fill(0)  # what is beyond the end is read, though never used
    packer(*(arrays[b.name] for b in fixed), *packed)
    packer.close()
    own = [np.array(arrays[b.name]) for b in kept]
    artifact = _artifact(func.name, (*taken, *kept, *copies), written, kernel, goal)
    return Module(artifact, (*own, *packed), kernel.text)


def _check_parameters(func: PrimFunc) -> None:
    problem = symbolic_problem(func)
    if problem is not None:
        raise LoweringError(problem)
    for buffer in func.buffers:
        dense = strides_of(buffer)
        strides = tuple(stride.value for stride in buffer.strides if isinstance(stride, IntImm))
        offset = buffer.elem_offset
        if strides not in ((), dense) or offset not in (None, IntImm(0)):
            raise LoweringError(
                f"parameter {buffer.name} is strided, or begins within its storage: a kernel "
                "takes dense arrays"
            )


def _function(program: PrimFunc | IRModule | Scheduled) -> PrimFunc:
    """Return what is to be compiled; of a module, its only function."""
    if isinstance(program, IRModule):
        if len(program.functions) != 1:
            raise BuildError(f"a kernel is one function: {program.choice()}")
        return program.functions[0]
    func: object = program if isinstance(program, PrimFunc) else getattr(program, "func", None)
    if not isinstance(func, PrimFunc):
        raise TypeError(
            f"expected a PrimFunc or a Schedule, not a {type(program).__name__}: "
            "lw.parse makes one of the text of a script, lw.ops.from_spec of an operator"
        )
    return func


def toolchain() -> str:
    """Name what made the code: a measurement is valid for it only."""
    return f"loopwright-codegen {CODEGEN_VERSION}, LLVM {llvm_version()}"
