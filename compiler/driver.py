"""From a program to a kernel: lower, generate code, compile, load."""

from __future__ import annotations

from typing import Protocol

from compiler.codegen.error import CodegenError
from compiler.codegen.machine_code import compile_object, llvm_version
from compiler.codegen.module import LlvmModule, emit_module
from compiler.ir.nodes import IntImm, IRModule, PrimFunc, Stmt, Store, static_shape
from compiler.ir.specialize import symbolic_vars
from compiler.ir.visit import walk
from compiler.passes.align_buffers import alignments_of
from compiler.passes.check_indices import check_indices
from compiler.passes.compact_buffers import compact_buffers, private_buffers
from compiler.passes.error import LoweringError
from compiler.passes.hoist_loads import hoist_loads
from compiler.passes.insert_barriers import insert_barriers
from compiler.passes.layout import strides_of
from compiler.passes.mark_pipelines import mark_pipelines
from compiler.passes.pipeline_loops import pipeline_loops
from compiler.passes.promote_accumulators import promote_accumulators
from compiler.passes.realize_blocks import realize_blocks
from compiler.passes.reduce_in_lanes import reduce_in_lanes
from compiler.passes.resolve_views import resolve_views
from compiler.passes.separate_threads import separate_threads
from compiler.passes.split_threads import split_threads
from compiler.passes.thread_loops import has_threads
from compiler.passes.tile_buffers import tile_buffers, tiles_of
from compiler.passes.unify_threads import unify_threads
from compiler.passes.unswitch_guards import unswitch_guards
from compiler.passes.unswitch_paddings import unswitch_paddings
from compiler.passes.widen_accumulators import widen_accumulators
from compiler.runtime.artifact import Artifact, Param
from compiler.runtime.module import Module
from compiler.target import Target

CODEGEN_VERSION = 1


class Scheduled(Protocol):
    """What holds a scheduled program: a `Schedule`."""

    @property
    def func(self) -> PrimFunc:
        """The program as it stands."""
        ...


class BuildError(Exception):
    """A program for which no kernel can be built, and why."""


def lower(func: PrimFunc, target: Target) -> Stmt:
    """Turn a scheduled program into loops over small buffers, ready for code generation.

    Raises:
        LoweringError: If there is no such program: variables are open, or threads can't run so.
    """
    _check_parameters(func)
    body = mark_pipelines(resolve_views(check_indices(func.body)))
    stmt = _lower_threads(body) if has_threads(body) else _lower_loops(body)
    register_file_bytes = target.num_vector_registers * target.vector_bits // 8
    stmt = promote_accumulators(reduce_in_lanes(stmt), register_file_bytes)
    # What is left of guards may stand in the way of accumulators: of whole tiles, no more.
    stmt = promote_accumulators(unswitch_guards(unswitch_paddings(stmt)), register_file_bytes)
    return hoist_loads(widen_accumulators(stmt))


def _lower_loops(body: Stmt) -> Stmt:
    realized = realize_blocks(body)
    stmt, tiled = tile_buffers(realized.stmt, tiles_of(body))
    carried = {tiled.get(buffer, buffer): loops for buffer, loops in realized.carried.items()}
    return pipeline_loops(compact_buffers(stmt, carried, alignments_of(body)))


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
        return emit_module(func.buffers, lower(func, target), target)
    except (CodegenError, LoweringError) as error:
        raise BuildError(f"{func.name}: {error}") from error


def compile_artifact(
    program: PrimFunc | IRModule | Scheduled, target: str | Target = "cpu"
) -> Artifact:
    """Compile a program, scheduled or not, for a target that need not be this host.

    Raises:
        BuildError: If it can't be compiled.
        TargetError: If the target is unknown.
        TypeError: If `program` is none.
    """
    func = _function(program)
    goal = target if isinstance(target, Target) else Target(target)
    module = emit_llvm(func, goal)
    written = {node.buffer for node in walk(func.body) if isinstance(node, Store)}
    params = tuple(
        Param(b.name, static_shape(b), b.dtype, is_output=b in written) for b in func.buffers
    )
    return Artifact(
        name=func.name,
        target=goal.name,
        triple=goal.triple,
        features=goal.features,
        toolchain=toolchain(),
        params=params,
        workspace_bytes=module.workspace_bytes,
        num_threads=module.num_threads,
        object_code=compile_object(module.text, goal),
    )


def build(program: PrimFunc | IRModule | Scheduled, target: str | Target = "cpu") -> Module:
    """Compile a program and load it.

    Raises:
        BuildError: If it can't be compiled.
        TargetError: If the target is unknown.
        TypeError: If `program` is none.
        ArtifactError: If this host can't run code for the target.
    """
    return Module(compile_artifact(program, target))


def _check_parameters(func: PrimFunc) -> None:
    symbols = [var.name for var in symbolic_vars(func)]
    if symbols:
        values = ", ".join(f'"{name}": 128' for name in symbols)
        raise LoweringError(
            f"{', '.join(symbols)} {'has' if len(symbols) == 1 else 'have'} no value yet: "
            f"give each one by func.specialize({{{values}}})"
        )
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
            names = ", ".join(func.name for func in program.functions) or "none"
            raise BuildError(f"a kernel is one function, and the module holds: {names}")
        return program.functions[0]
    func: object = program if isinstance(program, PrimFunc) else getattr(program, "func", None)
    if not isinstance(func, PrimFunc):
        raise TypeError(f"expected a PrimFunc or a Schedule, not a {type(program).__name__}")
    return func


def toolchain() -> str:
    """Name what made the code: a measurement is valid for it only."""
    return f"loopwright-codegen {CODEGEN_VERSION}, LLVM {llvm_version()}"
