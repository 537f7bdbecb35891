"""The C header of a packaged model: the prototype, the sizes, and how to call it."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.executor.c_files.c_header import LAUNCH_TYPES, c_comment
from compiler.executor.package import ALIGNMENT, POOL
from compiler.executor.params import Param
from compiler.package.emit_plan import run_name
from compiler.package.plan import ModelPlan

_CALL = f"""\
/* Runs the model once. The elements of `inputs` and `outputs` are addresses of dense arrays, each a
   multiple of the size of its elements; an output overlaps no other array. `weights` points to the
   content of weights.bin. The contents of the arena and of the workspace are undefined before and
   after. Calls at the same time need an arena and a workspace each; they may share the weights.
   Without a pool of threads, pass 1 and 0 for `threads` and `launch`; a package for several threads
   has a pool, {POOL}. */"""


def header(plan: ModelPlan) -> str:
    """Return the text of `model.h`."""
    prefix = plan.name.upper()
    lines = [
        f"/* The model {plan.name} for {plan.target.cpu}, {plan.target.arch}, by Loopwright. */",
        f"#ifndef LW_MODEL_{prefix}_H",
        f"#define LW_MODEL_{prefix}_H",
        "#include <stdint.h>",
        "",
        *_arrays(prefix, "input", plan.inputs),
        *_arrays(prefix, "output", plan.outputs),
        "/* The memory that a call needs, in bytes. */",
        f"#define {prefix}_ARENA_BYTES {plan.arena_bytes}",
        f"#define {prefix}_WEIGHTS_BYTES {plan.weights_bytes}",
        f"#define {prefix}_WORKSPACE_BYTES {plan.workspace_bytes}",
        "/* Of the arena, the weights and the workspace: they begin at a multiple of it. */",
        f"#define {prefix}_ALIGNMENT {ALIGNMENT}",
        "/* More threads are of no use. */",
        f"#define {prefix}_MAX_THREADS {plan.num_threads}",
        "",
        LAUNCH_TYPES,
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        *_prototype(plan),
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _arrays(prefix: str, kind: str, params: tuple[Param, ...]) -> Iterator[str]:
    """Describe the inputs or outputs: each is dense, in C order."""
    yield f"#define {prefix}_NUM_{kind.upper()}S {len(params)}"
    for position, param in enumerate(params):
        extents = ", ".join(map(str, param.shape))
        yield f"/* {kind} {position}: {c_comment(param.name)}, {param.dtype}[{extents}] */"
        yield f"#define {prefix}_{kind.upper()}_{position}_BYTES {param.size_bytes}"


def _prototype(plan: ModelPlan) -> Iterator[str]:
    yield _CALL
    yield f"void {run_name(plan.name)}("
    yield "    const void *const *inputs, void *const *outputs, void *arena, const void *weights,"
    yield "    void *workspace, int64_t threads, lw_launch_function launch);"
    if plan.num_threads > 1:
        yield f"/* The pool of threads of {POOL}; link it with -lpthread. */"
        yield "void lw_launch(lw_task task, int64_t extent, void *context, int64_t threads);"
