"""Operators on tensors follow one another: a chain is one program."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops, te
from compiler.driver import build
from compiler.ir.core.nodes import Block
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.interpret.inputs import param_roles
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.ops import tensors
from compiler.ops.spec import parse_spec
from tests.targets import level, runs_here
from tests.unit.compiler.ops.specs import SPECS

Array = NDArray[Any]
Chain: TypeAlias = tuple[list[te.Tensor], te.Tensor, Callable[..., Array]]


def placeholder(*shape: int, name: str) -> te.Tensor:
    return te.placeholder(shape, "float32", name)


def wide(spec: str) -> Callable[..., Array]:
    """Return a reference that rounds nothing between the steps of a chain."""
    return ops.reference(f"{spec}:float64")


def dense_of_relu_of_layer_norm() -> Chain:
    x, gamma, beta = (
        placeholder(6, 16, name="x"),
        placeholder(16, name="gamma"),
        placeholder(16, name="beta"),
    )
    w = placeholder(8, 16, name="w")
    output = tensors.dense(tensors.relu(tensors.layer_norm(x, gamma, beta)), w)

    def expected(x: Array, gamma: Array, beta: Array, w: Array) -> Array:
        normed = wide("layer_norm:6,16")(x, gamma, beta)
        return wide("dense:6,8,16")(wide("relu:6,16")(normed), w)

    return [x, gamma, beta, w], output, expected


def residual_block() -> Chain:
    x, w = placeholder(1, 4, 7, 7, name="x"), placeholder(4, 4, 3, 3, name="w")
    statistics = [placeholder(4, name=name) for name in ("gamma", "beta", "mean", "variance")]
    normed = tensors.batch_norm(tensors.conv2d(x, w, padding=1), *statistics)
    output = tensors.max_pool2d(tensors.relu(tensors.add(normed, x)), kernel=3, stride=2)

    def expected(x: Array, w: Array, *statistics: Array) -> Array:
        normed = wide("batch_norm:1,4,7,7")(wide("conv2d:1,4,7,7,4,3,1,1")(x, w), *statistics)
        return wide("max_pool2d:1,4,7,7,3,2")(np.maximum(normed + x, 0))

    return [x, w, *statistics], output, expected


def attention_of_heads() -> Chain:
    """Attention in its steps; the queries are the keys and the values."""
    x, w = placeholder(10, 12, name="x"), placeholder(12, 12, name="w")
    weights = tensors.softmax(tensors.matmul(x, x, transpose_b=True))
    output = tensors.gelu(tensors.dense(tensors.matmul(weights, x), w), approximate="tanh")

    def expected(x: Array, w: Array) -> Array:
        scores = wide("attention:1,1,10,10,12,scale=1.0")(*[x[None, None]] * 3)[0, 0]
        return wide("gelu:10,12,approximate=tanh")(scores @ w.T)

    return [x, w], output, expected


def moved_and_added_up() -> Chain:
    a, b = placeholder(3, 4, name="a"), placeholder(2, 4, name="b")
    joined = tensors.concat(a, tensors.exp(b))
    padded = tensors.pad(tensors.transpose(joined), pad_before=1, pad_after=0)
    output = tensors.cumsum(tensors.cumsum(padded, axis=0), axis=1)

    def expected(a: Array, b: Array) -> Array:
        joined = np.concatenate([a, np.exp(b)]).T
        return np.pad(joined, ((1, 0), (1, 0))).cumsum(0).cumsum(1)

    return [a, b], output, expected


def looked_up_and_reduced() -> Chain:
    table, indices = placeholder(9, 8, name="table"), te.placeholder((5,), "int32", "indices")
    weight = placeholder(8, name="weight")
    rows = tensors.rms_norm(tensors.embedding(table, indices), weight)
    output = tensors.log_softmax(tensors.mean(rows, axis=1))

    def expected(table: Array, indices: Array, weight: Array) -> Array:
        rows = table[indices.clip(0, 8)]
        normed = rows / np.sqrt((rows**2).mean(1, keepdims=True) + 1e-5) * weight
        means = normed.mean(1)
        return np.asarray(means - np.log(np.exp(means).sum()))

    return [table, indices, weight], output, expected


CHAINS = (
    dense_of_relu_of_layer_norm,
    residual_block,
    attention_of_heads,
    moved_and_added_up,
    looked_up_and_reduced,
)


def program(chain: Chain) -> tuple[PrimFunc, dict[str, Array], dict[str, Array]]:
    """Return the program of a chain, inputs, and what the references compute from them."""
    inputs, output, expected = chain
    func = te.create_prim_func([*inputs, output])
    arrays = random_inputs(func, seed=3)
    given = [arrays[buffer.name] for buffer in func.buffers[:-1]]
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in given]
    result = func.buffers[-1]
    return func, arrays, {result.name: expected(*exact).astype(result.dtype)}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_computes_what_its_references_do(chain: Callable[[], Chain]) -> None:
    func, arrays, expected = program(chain())
    compare(func, expected, interpret(func, arrays))


@runs_here(2)
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_is_one_kernel(chain: Callable[[], Chain]) -> None:
    func, arrays, expected = program(chain())
    ((name, result),) = expected.items()
    got = np.full(result.shape, np.nan, result.dtype)
    module = build(func, level(2))
    module(*(arrays[buffer.name] for buffer in func.buffers[:-1]), got)
    module.close()
    compare(func, expected, {name: got})


# Quantized results are unsigned by default: they have no negative.
SIGNED = [
    spec
    for spec in SPECS
    if spec.count(":") == 1 and "dtype" not in spec and not spec.startswith("quantized")
]


@pytest.mark.parametrize("spec", SIGNED)
def test_every_operator_takes_what_others_return(spec: str) -> None:
    """Between an operator before each input and one after the output."""
    operator = ops.OPERATORS[spec.split(":", maxsplit=1)[0]]
    program = ops.from_spec(spec)
    written = param_roles(program).outputs
    given = [buffer for buffer in program.buffers if buffer.name not in written]
    inputs = [te.Tensor(buffer) for buffer in given]
    before = [tensors.abs(x) if x.dtype == "float32" else x for x in inputs]
    parameters = inspect.signature(operator.tensors).parameters
    names = {p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
    options = {k: v for k, v in parse_spec(spec).bound().items() if k in names}
    required, optional = [], {}
    for buffer, tensor in zip(given, before, strict=True):
        if buffer.name in parameters and parameters[buffer.name].default is None:
            optional[buffer.name] = tensor
        else:
            required.append(tensor)
    outputs = operator.tensors(*required, **optional, **options)
    output = tensors.negative(outputs[0] if isinstance(outputs, tuple) else outputs)
    func = te.create_prim_func([*inputs, output])
    arrays = random_inputs(func, seed=4)
    plain = [np.abs(arrays[b.name]) if b.dtype == "float32" else arrays[b.name] for b in given]
    result = ops.reference(spec)(*plain)
    expected = {func.buffers[-1].name: -(result[0] if isinstance(result, tuple) else result)}
    compare(func, expected, interpret(func, arrays))


def test_the_blocks_of_a_chain_have_names_of_their_own() -> None:
    inputs, output, _ = moved_and_added_up()
    func = te.create_prim_func([*inputs, output])
    names = [node.name for node in walk(func.body) if isinstance(node, Block)]
    assert len(set(names)) == len(names)
    assert {"cumsum", "cumsum_1"} <= set(names)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (tensors.dense, r"dense: x has 3 dimension\(s\): expected 2"),
        (lambda x, n: tensors.matmul(x, x), r"matmul: shapes \(2, 3, 4\) and \(2, 3, 4\) have no"),
        (tensors.matmul, "have no product"),
        (tensors.add, r"broadcast shapes \(2, 3, 4\) and \(5,\)"),
        (
            tensors.rms_norm,
            r"rms_norm: n has shape \(5,\): expected \(4,\)",
        ),
        (
            lambda x, n: tensors.matmul(x, tensors.transpose(x, axes=(0, 2, 1)), n),
            r"matmul: n has shape \(5,\): expected \(3,\)",
        ),
        (
            lambda x, n: tensors.conv1d(x, x, groups=2),
            r"2 results do not fit 3 channels in 2 group",
        ),
        (tensors.concat, r"concat: n has 1 dimension\(s\): expected 3"),
        (lambda x, n: tensors.concat(), "concat: expected at least one tensor"),
        (tensors.take, "index_dtype is 'float32': expected one of int32"),
        (
            lambda x, n: tensors.add(x, tensors.cast(x, out_dtype="float64")),
            "add: x has type float32, B has type float64: expected one type",
        ),
        (
            lambda x, n: tensors.softmax(te.placeholder((te.var("m"),), name="s")),
            "softmax: s has a symbolic extent: expected numbers",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    make: Callable[[te.Tensor, te.Tensor], te.Tensor], message: str
) -> None:
    with pytest.raises(ops.OperatorError, match=message):
        make(placeholder(2, 3, 4, name="x"), placeholder(5, name="n"))
