"""Tensor intrinsics for the innermost loops of random programs."""

from __future__ import annotations

from functools import cache

from compiler.ir.core.nodes import BinOp, Block, Buffer, FloatImm, Load, Store
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.script import parse

# What is computed at one place, as text: the buffers are O (the output), A and B.
_VALUES = {
    "copy": "A[{i}]",
    "fill": "T.float32(0)",
    "add": "A[{i}] + B[{i}]",
    "update": "O[{i}] + A[0] * B[{i}]",
}


def intrinsic_for(block: Block, size: int) -> str | None:
    """Return the name of an intrinsic for `size` points of a block, None if none fits."""
    store = block.body
    if block.init is not None or not isinstance(store, Store) or store.buffer.dtype != "float32":
        return None
    operands = _operands(store)
    if operands is None:
        return None
    form, buffers = operands
    if any(buffer.dtype != "float32" for buffer in buffers):
        return None
    return _register(form, tuple(b.scope for b in (*buffers, store.buffer)), size)


def _operands(store: Store) -> tuple[str, list[Buffer]] | None:
    match store.value:
        case FloatImm(0.0):
            return "fill", []
        case Load(source, _):
            return "copy", [source]
        case BinOp("+", Load(own), BinOp("*", Load(a), Load(b))) if own == store.buffer:
            return "update", [a, b]
        case BinOp("+", Load(a), Load(b)) if store.buffer not in (a, b):
            return "add", [a, b]
        case _:
            return None


@cache
def _register(form: str, scopes: tuple[str, ...], size: int) -> str:
    name = "_".join((form, *scopes, str(size)))
    names = [*"AB"[: len(scopes) - 1], "O"]
    sizes = [1 if form == "update" and n == "A" else size for n in names]
    params = ", ".join(
        f'{n}: T.Buffer(({extent},), "float32", scope="{scope}")'
        for n, extent, scope in zip(names, sizes, scopes, strict=True)
    )
    head = f"@T.prim_func\ndef main({params}):\n"
    desc = (
        f"{head}    for i in range({size}):\n"
        f'        with T.block("O"):\n'
        f"            vi = T.axis.spatial({size}, i)\n"
        f"            O[vi] = {_VALUES[form].format(i='vi')}\n"
    )
    # Backwards: an instruction may do its places in any order.
    lines = [f"    O[{i}] = {_VALUES[form].format(i=i)}\n" for i in reversed(range(size))]
    TensorIntrin.register(name, parse(desc), parse(head + "".join(lines)), override=True)
    return name
