"""Programs from the text of their body."""

from __future__ import annotations

from textwrap import indent

from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse


def script(body: str, **buffers: str) -> PrimFunc:
    """Parse a program of a body and its parameters, such as `A="45 float32"`."""
    params = []
    for name, text in buffers.items():
        *shape, dtype = text.split()
        params.append(f'{name}: T.Buffer(({", ".join(shape)},), "{dtype}")')
    return parse(f"@T.prim_func\ndef main({', '.join(params)}):\n{indent(body.strip(), '    ')}\n")
