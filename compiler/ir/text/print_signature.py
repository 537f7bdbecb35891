"""Print the head of a function: its parameters, and the declarations of symbolic variables."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.analysis.symbols import described_by
from compiler.ir.core.nodes import (
    Buffer,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.spelling import Spelling
from compiler.ir.text.names import Names, identifier
from compiler.ir.text.print_buffer import print_buffer, symbols_of
from compiler.ir.text.print_expr import print_annotations


@dataclass(frozen=True, slots=True)
class Signature:
    """The head of a function.

    `above` declares type variables, before the decorator; `below` is the beginning of the body.
    """

    above: tuple[str, ...]
    head: str
    below: tuple[str, ...]


def print_signature(func: PrimFunc, names: Names, spelling: Spelling) -> Signature:
    """Print the head of a function, and choose the names of its parameters and variables."""
    head = _in_signature if spelling.symbols_in_signature else _in_body
    above, params, symbols, matches = head(func, names, spelling)
    attrs = (f"T.func_attr({print_annotations(func.attrs)})",) if func.attrs else ()
    text = f"def {identifier(func.name)}({', '.join(params)}):"
    return Signature(above, text, (*symbols, *attrs, *matches))


_Parts = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _in_signature(func: PrimFunc, names: Names, spelling: Spelling) -> _Parts:
    """Name symbolic variables in the signature, as strings at their first use."""
    scalars = {param for param in func.params if isinstance(param, Var)}
    shapes = [var for buffer in func.buffers for var in symbols_of(buffer.shape)]
    wide = [var for var in dict.fromkeys(shapes) if var.dtype == "int64" and var not in scalars]
    above = tuple(f'{name} = TypeVar("{name}")' for name in [names.bind(var) for var in wide])
    params = [
        _parameter(param, names, spelling) if isinstance(param, Buffer) else _scalar(param, names)
        for param in func.params
    ]
    # A name in a string is an int32; for names in shapes, TVM declares that, too.
    others = (var for buffer in func.buffers for var in symbols_of(described_by(buffer)))
    declared = [v for v in dict.fromkeys(others) if v in shapes or v.dtype != "int32"]
    declared = [v for v in declared if v not in scalars and v not in wide]
    return above, tuple(params), _declarations(declared, names, spelling), ()


def _in_body(func: PrimFunc, names: Names, spelling: Spelling) -> _Parts:
    """Match handles with buffers of symbolic shapes, after their variables are declared."""
    params: list[str] = []
    matched: list[tuple[str, Buffer]] = []
    for param in func.params:
        if isinstance(param, Var):
            params.append(_scalar(param, names))
        elif _needs_matching(param, spelling):
            handle = names.bind(Var(f"var_{param.name}", "handle"))
            params.append(f"{handle}: T.handle")
            matched.append((handle, param))
        else:
            params.append(_parameter(param, names, spelling))
    symbols = dict.fromkeys(var for _, b in matched for var in symbols_of(described_by(b)))
    declared = _declarations([v for v in symbols if v not in func.params], names, spelling)
    matches = []
    for handle, buffer in matched:
        arguments = print_buffer(buffer, names)
        name = names.bind(buffer.data)
        matches.append(f"{name} = T.match_buffer({handle}, {arguments})")
    return (), tuple(params), declared, tuple(matches)


def _needs_matching(buffer: Buffer, spelling: Spelling) -> bool:
    """Return whether a type annotation can't describe the buffer: a subscript takes no keywords."""
    has_details = buffer.scope != "global" or buffer.offset_factor
    return any(symbols_of(described_by(buffer))) or bool(
        (has_details or buffer.strides or buffer.elem_offset is not None)
        and spelling.buffer.endswith("]")
    )


def _scalar(var: Var, names: Names) -> str:
    return f"{names[var]}: T.{var.dtype}"


def _parameter(buffer: Buffer, names: Names, spelling: Spelling) -> str:
    arguments = print_buffer(buffer, names, is_parameter=True)
    name = names.bind(buffer.data)
    return f"{name}: {spelling.buffer.format(arguments=arguments)}"


def _declarations(variables: list[Var], names: Names, spelling: Spelling) -> tuple[str, ...]:
    """Return the line that declares variables; no line without variables."""
    if not variables:
        return ()
    targets = ", ".join([names[var] for var in variables])
    right = ", ".join([spelling.symbol.format(dtype=var.dtype) for var in variables])
    return (f"{targets} = {right}",)
