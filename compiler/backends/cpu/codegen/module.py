"""A whole LLVM module: the kernel's entry, its body, and the functions of its parallel loops.

The entry takes one pointer to 64-bit words: the addresses of the parameters, the values of symbolic
variables, the address of the workspace, the number of threads, and the address of `lw_launch`,
which runs a parallel loop on threads. Bodies take buffers as `noalias` arguments, so that LLVM's
instruction scheduler may move loads over stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.backends.backend import SourceCode
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.function import FunctionEmitter, ModuleState
from compiler.backends.cpu.codegen.threads.dynamic_partition import dynamic_launch_runtime
from compiler.executor.params import ENTRY
from compiler.ir.analysis.small_integers import small_buffers
from compiler.ir.core.llvm_calls import LLVM_CALL, is_offered, llvm_function
from compiler.ir.core.nodes import Buffer, Call, Stmt, StringImm, Var
from compiler.ir.core.visit import walk
from compiler.passes.cpu.promote_accumulators import register_buffers
from compiler.runtime.kernel_params import extent_of, symbols_of
from compiler.target.cpu import CpuTarget


def emit_module(
    params: tuple[Buffer | Var, ...], stmt: Stmt, target: CpuTarget, sizes: tuple[Var, ...] = ()
) -> SourceCode:
    """Write the module of a lowered program.

    Args:
        params: The buffers and values that it takes.
        stmt: Its body.
        target: The CPU.
        sizes: The symbolic extents of buffers, whose values it takes, too.

    Raises:
        CodegenError: If the program expands to too much code, or the CPU lacks a function of it.
    """
    _check_functions(stmt, target)
    buffers = tuple(param for param in params if isinstance(param, Buffer))
    module = ModuleState(target, register_buffers(stmt), small_buffers(stmt, buffers))
    body = FunctionEmitter(module, is_task=False)
    arguments = body.bind_parameters((*params, *sizes))
    body.run(stmt)
    text = body.define("body", [*arguments, "ptr %workspace", "i64 %threads", "ptr %launch"])
    parts = [
        f'target triple = "{target.triple}"',
        *module.functions,
        text,
        _entry([argument.split()[0] for argument in arguments]),
        *([dynamic_launch_runtime()] if module.has_dynamic_launch else []),
        *sorted(module.externals),
        f'attributes #0 = {{ nounwind "tune-cpu"="{target.cpu}"'
        f' "prefer-vector-width"="{target.vector_bits}"'
        f' "min-legal-vector-width"="{target.vector_bits}" }}',
        "!0 = !{i32 1}",  # what LLVM requires of the metadata `!nontemporal`
    ]
    return SourceCode(
        text="\n".join(parts) + "\n",
        workspace_bytes=extent_of(body.workspace_bytes),
        num_threads=target.num_cores if module.functions else 1,
        symbols=symbols_of(sizes),
    )


def _check_functions(stmt: Stmt, target: CpuTarget) -> None:
    """Refuse functions of LLVM that need a feature which the CPU lacks.

    Raises:
        CodegenError: Naming the function and the feature.
    """
    for node in walk(stmt):
        match node:
            case Call(name, (StringImm(text), *_), _) if name == LLVM_CALL:
                function = llvm_function(text)
                if not is_offered(function, target.features):
                    needed = str(function.feature).replace("|", " or ")
                    raise CodegenError(f"{text} needs {needed}, which {target.cpu} lacks")
            case _:
                pass


def _entry(kinds: Sequence[str]) -> str:
    """Return the entry of a body with parameters of these types, before the common ones."""
    lines = [f"define void @{ENTRY}(ptr %args) #0 {{"]
    arguments = []
    for position, kind in enumerate([*kinds, "ptr", "i64", "ptr"]):  # as `body` has them
        lines.append(f"  %slot{position} = getelementptr inbounds i64, ptr %args, i64 {position}")
        lines.append(f"  %word{position} = load {kind}, ptr %slot{position}")
        arguments.append(f"{kind} %word{position}")
    lines += [f"  call void @body({', '.join(arguments)})", "  ret void", "}"]
    return "\n".join(lines)
