"""Programs and their parameters in one line, for `repr`."""

from __future__ import annotations

from compiler.ir.core.nodes import Buffer, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import show_expr


def describe_func(func: PrimFunc) -> str:
    """Return a signature such as `matmul(A: float32[64, n], n: int32)`."""
    names = Names()
    return f"{func.name}({', '.join(_param(param, names) for param in func.params)})"


def describe_buffer(buffer: Buffer, names: Names | None = None) -> str:
    """Return a buffer such as `A: float32[64, 64]`."""
    names = Names() if names is None else names
    extents = (str(e.value) if isinstance(e, IntImm) else show_expr(e, names) for e in buffer.shape)
    return f"{buffer.name}: {buffer.dtype}[{', '.join(extents)}]"


def _param(param: Buffer | Var, names: Names) -> str:
    if isinstance(param, Buffer):
        return describe_buffer(param, names)
    return f"{names[param]}: {param.dtype}"
