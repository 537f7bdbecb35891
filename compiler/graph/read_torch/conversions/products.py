"""Matrix products."""

from __future__ import annotations

from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


def transposed(call: TorchCall, x: Operand) -> Operand:
    """Return a tensor with its last two dimensions exchanged."""
    rank = x.type.rank
    if rank < 2:
        return x
    return call.add("permute_dims", x, axes=(*range(rank - 2), rank - 1, rank - 2))


@aten("mm.default", "bmm.default")
def _product(call: TorchCall) -> Operand:
    return call.add("matmul", call.operand("self"), call.operand("mat2"))


@aten("matmul.default")
def _matmul(call: TorchCall) -> Operand:
    return call.add("matmul", call.operand("self"), call.operand("other"))


@aten("mv.default")
def _of_vector(call: TorchCall) -> Operand:
    return call.add("matmul", call.operand("self"), call.operand("vec"))


@aten("dot.default")
def _of_vectors(call: TorchCall) -> Operand:
    return call.add("matmul", call.operand("self"), call.operand("tensor"))


@aten("linear.default")
def _linear(call: TorchCall) -> Operand:
    bias = call.optional("bias")
    weight = transposed(call, call.operand("weight"))
    product = call.add("matmul", call.operand("input"), weight)
    return product if bias is None else call.add("add", product, bias)


@aten("addmm.default", "baddbmm.default")
def _add_product(call: TorchCall) -> Operand:
    first, second = ("mat1", "mat2") if call.overload == "addmm.default" else ("batch1", "batch2")
    product = call.add("matmul", call.operand(first), call.operand(second))
    added = call.operand("self")
    for name in ("alpha", "beta"):
        number = call.number(name)
        if number == 1:
            continue
        if name == "alpha":
            product = call.add("multiply", product, call.like(product, number))
        else:
            added = call.add("multiply", added, call.like(added, number))
    # With a factor of 0, not even a NaN of the summand counts.
    return product if call.number("beta") == 0 else call.add("add", product, added)
