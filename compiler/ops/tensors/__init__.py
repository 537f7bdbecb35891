"""Operators on tensors, to chain: `te.Tensor` in, `te.Tensor` out.

    x = te.placeholder((8, 64)); gamma, beta = te.placeholder((64,)), te.placeholder((64,))
    weight = te.placeholder((32, 64))
    output = tensors.dense(tensors.relu(tensors.layer_norm(x, gamma, beta)), weight)
    program = te.create_prim_func([x, gamma, beta, weight, output])

Inputs are positional, options are keywords. `te.create_prim_func` makes one program of a chain.
The names are those of the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.ops.operator import OPERATORS

if TYPE_CHECKING:
    # ruff: noqa: F403
    from compiler.ops.tensors.blocked_convolution import *
    from compiler.ops.tensors.convolution import *
    from compiler.ops.tensors.elementwise import *
    from compiler.ops.tensors.indexing import *
    from compiler.ops.tensors.linear import *
    from compiler.ops.tensors.normalization import *
    from compiler.ops.tensors.partial_sort import *
    from compiler.ops.tensors.pooling import *
    from compiler.ops.tensors.quantized import *
    from compiler.ops.tensors.recurrent import *
    from compiler.ops.tensors.reductions import *
    from compiler.ops.tensors.scaled_dot_product import *
    from compiler.ops.tensors.shape import *
    from compiler.ops.tensors.transposed_convolution import *
    from compiler.ops.tensors.weight_only import *
    from compiler.ops.tensors.winograd import *

if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name

    def __getattr__(name: str) -> Any:
        """Return the tensor function of an operator."""
        if name not in OPERATORS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return OPERATORS[name].tensors


def __dir__() -> list[str]:
    """Return the operators."""
    return sorted(OPERATORS)
