"""Print the properties of a buffer: shape, type, strides, offset and scope."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from compiler.ir.core.nodes import Buffer, Expr, Var
from compiler.ir.core.visit import walk
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import print_expr


def print_buffer(buffer: Buffer, names: Names, *, is_parameter: bool = False) -> str:
    """Print the arguments of a call that makes a buffer, in TVM's order.

    Args:
        buffer: The buffer.
        names: The names in scope; a variable without a name is written as text.
        is_parameter: Whether to print the type even if it is float32.
    """
    arguments = [_tuple(buffer.shape, names)]
    if is_parameter or buffer.dtype != "float32":
        arguments.append(f'"{buffer.dtype}"')
    if buffer.strides:
        arguments.append(f"strides={_tuple(buffer.strides, names)}")
    if buffer.elem_offset is not None:
        arguments.append(f"elem_offset={_dimension(buffer.elem_offset, names)}")
    if buffer.scope != "global":
        arguments.append(f'scope="{buffer.scope}"')
    if buffer.offset_factor:
        arguments.append(f"offset_factor={buffer.offset_factor}")
    return ", ".join(arguments)


def name_strides(buffer: Buffer, names: Names) -> None:
    """Name the strides that a buffer introduces as TVM does."""
    for number, stride in enumerate(buffer.strides):
        if isinstance(stride, Var) and names[stride].isidentifier():
            names.call(stride, f"{names[buffer.data]}.strides[{number}]")


def symbols_of(exprs: Iterable[Expr]) -> Iterator[Var]:
    """Yield the variables in expressions, in the order in which they are written."""
    for expr in exprs:
        yield from (node for node in walk(expr) if isinstance(node, Var))


def _tuple(exprs: tuple[Expr, ...], names: Names) -> str:
    inner = ", ".join(_dimension(expr, names) for expr in exprs)
    return f"({inner},)" if len(exprs) == 1 else f"({inner})"


def _dimension(expr: Expr, names: Names) -> str:
    is_first = any(var not in names for var in symbols_of((expr,)))
    text = print_expr(expr, names)
    return json.dumps(text) if is_first else text
