"""Replacements for the schedules of old tensor expressions: programs are scheduled, not tensors."""

from __future__ import annotations

OLD_SCHEDULES: dict[str, str] = {
    "create_schedule": (
        "sch = lw.Schedule(te.create_prim_func([A, B, C])); "
        'xo, xi = sch.split(sch.get_loops("C")[0], factor=32). What s[C].split, tile, reorder, '
        "bind, parallel, vectorize, unroll and compute_at did, methods of lw.Schedule do"
    ),
    "decl_tensor_intrin": (
        'lw.TensorIntrin.register("gemm8x8", description, implementation), two programs; '
        'then sch.tensorize(loop, "gemm8x8")'
    ),
    "thread_axis": 'the name of the thread alone: sch.bind(loop, "threadIdx.x")',
}


def missing(module: str, name: str, replacements: dict[str, str]) -> AttributeError:
    """Return the error for a missing name of a module, with its replacement."""
    instead = replacements.get(name)
    hint = "" if instead is None else f"; instead: {instead}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
