"""Attention, which torch.export keeps whole."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant, Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.conversions.products import transposed
from compiler.graph.read_torch.registry import aten


@aten("scaled_dot_product_attention.default")
def _attention(call: TorchCall) -> Operand:
    query, key, value = (call.operand(name) for name in ("query", "key", "value"))
    if call.flag("enable_gqa"):
        key, value = (_for_heads(call, x, query.type.static_shape[-3]) for x in (key, value))
    return _attended(call, query, key, value)


@aten("_scaled_dot_product_flash_attention_for_cpu.default")
def _flash_attention(call: TorchCall) -> tuple[Operand, None]:
    query, key, value = (call.operand(name) for name in ("query", "key", "value"))
    return _attended(call, query, key, value), None


def _for_heads(call: TorchCall, x: Operand, heads: int) -> Operand:
    """Return keys or values with as many heads as the queries have."""
    repeats = heads // x.type.static_shape[-3]
    return x if repeats == 1 else call.add("repeat", x, repeats=repeats, axis=x.type.rank - 3)


def _attended(call: TorchCall, query: Operand, key: Operand, value: Operand) -> Operand:
    if call.number("dropout_p"):
        raise ModelError("dropout is not supported", advice="export in evaluation mode: eval()")
    given = call.argument("scale")
    width = query.type.static_shape[-1]
    scale = 1 / math.sqrt(width) if given is None else cast("float", given)
    scaled = call.add("multiply", query, call.like(query, scale))
    scores = call.add("matmul", scaled, transposed(call, key))
    mask = _mask(call, scores)
    if mask is None:
        return call.add("matmul", call.add("nn.softmax", scores, axis=-1), value)
    lowest = call.like(scores, -math.inf)
    if mask.type.dtype == "bool":
        masked = call.add("where", mask, scores, lowest)
    else:
        masked = call.add("add", scores, call.cast(mask, scores.type.dtype))
    weights = call.add("nn.softmax", masked, axis=-1)
    if not _has_open_rows(mask):
        # Of a row without any key, PyTorch's result is 0.
        is_closed = call.add("equal", masked, lowest)
        weights = call.add("where", is_closed, call.like(scores, 0), weights)
    return call.add("matmul", weights, value)


def _mask(call: TorchCall, scores: Operand) -> Operand | None:
    """Return which keys a query sees, or what is added to their scores; None without a mask."""
    if not call.flag("is_causal"):
        return call.optional("attn_mask")
    rows, columns = scores.type.static_shape[-2:]
    return call.constant(np.tri(rows, columns, dtype=np.bool_))


def _has_open_rows(mask: Operand) -> bool:
    """Return whether a mask is known to leave a key to each query."""
    if not isinstance(mask, Constant):
        return False
    elements = mask.elements
    is_open = elements if mask.type.dtype == "bool" else elements > -np.inf
    return bool(is_open.any(-1).all())
