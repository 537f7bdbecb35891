"""Names of TVM and of its course notes that differ in Loopwright, with their replacements."""

from __future__ import annotations

_TE = (
    *("abs", "all", "any", "comm_reducer", "compute", "const", "create_prim_func"),
    *("create_schedule", "decl_tensor_intrin", "exp", "max", "min", "placeholder", "prod"),
    *("reduce_axis", "scan", "sigmoid", "sqrt", "sum", "tanh", "thread_axis", "var"),
)

REPLACEMENTS: dict[str, str] = {
    **{name: f"from loopwright import te; te.{name}(...)" for name in _TE},
    "build_module": "lw.build(program)",
    "cuda": "kernels run on the CPU: lw.cpu()",
    "gpu": "kernels run on the CPU: lw.cpu()",
    "ir_module": "from loopwright.script import ir_module; @ir_module above a class",
    "meta_schedule": "lw.tune(program, max_trials=200)",
    "prim_func": "from loopwright.script import T; @T.prim_func above a function",
    "runtime": "lw.Module.load(path) for load_module, lw.nd for arrays",
    "target": 'lw.Target("cpu")',
}


def missing(module: str, name: str, replacements: dict[str, str]) -> AttributeError:
    """Return the error for a missing name of a module, with its replacement."""
    instead = replacements.get(name)
    hint = "" if instead is None else f"; instead: {instead}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
