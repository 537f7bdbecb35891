"""Recurrent layers over whole sequences, with the gates and the parameters of PyTorch's.

Inputs are `[steps, batch, input]`, states `[batch, hidden]`. The weights and biases of all gates
follow each other: those of an LSTM are i, f, g and o, those of a GRU r, z and the new state.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.checks import check_rank, check_shape
from compiler.graph.operators.types import check_accepts, check_same_dtype
from compiler.ir.core.dtypes import sum_dtype
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors import recurrent as library


def _lstm(x: te.Tensor, *operands: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    return library.lstm(x, *operands)


def _lstm_arrays(x: Array, *operands: Array) -> tuple[Array, Array]:
    x, h, c, w_ih, w_hh, b_ih, b_hh = (widened(each) for each in (x, *operands))
    steps = []
    for step in x:
        gates = step @ w_ih.T + h @ w_hh.T + b_ih + b_hh
        i, f, g, o = np.split(gates, 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.stack(steps), c


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


@graph_operator("nn.lstm", "opaque", tensors=_lstm, reference=_lstm_arrays)
def lstm(  # noqa: PLR0917 - the operands of PyTorch
    x: TensorType,
    h: TensorType,
    c: TensorType,
    w_ih: TensorType,
    w_hh: TensorType,
    b_ih: TensorType,
    b_hh: TensorType,
) -> tuple[TensorType, TensorType]:
    """Infer the hidden states after each step, and the last cell state."""
    states = _check_layer("nn.lstm", 4, x, h, w_ih, w_hh, b_ih, b_hh)
    check_same_dtype("nn.lstm", x, c)
    check_shape("nn.lstm", "the cell state", c, h.shape)
    return states, c


def _gru(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
    *,
    reset_after: bool,
) -> te.Tensor:
    if reset_after:
        return library.gru(x, h, w_ih, w_hh, b_ih, b_hh)
    hidden, dtype = static_shape(h.buffer)[1], sum_dtype(x.dtype)
    inputs = _inputs(x, w_ih)
    states = te.placeholder((static_shape(x.buffer)[0] + 1, *static_shape(h.buffer)), x.dtype)
    before = _recurrent(states, w_hh, "gates", rows=2 * hidden)

    def gate(number: int, t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        bias = b_ih[row].astype(dtype) + b_hh[row].astype(dtype)
        return te.sigmoid(inputs[t - 1, b, row] + before[t, b, row] + bias)

    reset = te.compute(
        states.shape,
        lambda t, b, j: gate(0, t, b, j) * states[t - 1, b, j].astype(dtype),
        name="reset",
    )
    k = te.reduce_axis((0, hidden), name="k")
    product = te.compute(
        states.shape,
        lambda t, b, j: te.sum(reset[t, b, k] * w_hh[j + 2 * hidden, k].astype(dtype), axis=k),
        name="of_reset",
    )

    def element(t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        row = j + 2 * hidden
        bias = b_ih[row].astype(dtype) + b_hh[row].astype(dtype)
        new = te.tanh(inputs[t - 1, b, row] + product[t, b, j] + bias)
        old = states[t - 1, b, j].astype(dtype)
        return (new + gate(1, t, b, j) * (old - new)).astype(x.dtype)

    return _scanned(h, states, element)


def _inputs(x: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """Return the products of the inputs of all steps with the weights of all gates."""
    (steps, batch, width), rows = static_shape(x.buffer), static_shape(weights.buffer)[0]
    k, dtype = te.reduce_axis((0, width), name="k"), sum_dtype(x.dtype)
    return te.compute(
        (steps, batch, rows),
        lambda t, b, j: te.sum(x[t, b, k].astype(dtype) * weights[j, k].astype(dtype), axis=k),
        name="inputs",
    )


def _recurrent(states: te.Tensor, weights: te.Tensor, name: str, rows: int) -> te.Tensor:
    """Return the products of the state before each step with the first rows of weights."""
    count, batch, hidden = static_shape(states.buffer)
    k, dtype = te.reduce_axis((0, hidden), name="k"), sum_dtype(states.dtype)
    return te.compute(
        (count, batch, rows),
        lambda t, b, j: te.sum(
            states[t - 1, b, k].astype(dtype) * weights[j, k].astype(dtype), axis=k
        ),
        name=name,
    )


def _scanned(
    h: te.Tensor, states: te.Tensor, element: Callable[[te.Value, te.Value, te.Value], te.Value]
) -> te.Tensor:
    """Return the states after each step; `element` returns one in terms of earlier steps."""
    count, *dims = static_shape(states.buffer)
    first = te.compute((1, *dims), lambda _, b, j: h[b, j], name="first")
    update = te.compute(states.shape, element, name="h_next")
    all_states: te.Tensor = te.scan(first, update, states, name="states")
    return te.compute((count - 1, *dims), lambda t, b, j: all_states[t + 1, b, j], name="out")


def _gru_arrays(x: Array, *operands: Array, reset_after: bool) -> Array:
    x, h, w_ih, w_hh, b_ih, b_hh = (widened(each) for each in (x, *operands))
    hidden, steps = h.shape[1], []
    for step in x:
        of_input, of_state = step @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        r, z = (
            _sigmoid(of_input[:, part] + of_state[:, part])
            for part in (slice(hidden), slice(hidden, 2 * hidden))
        )
        new = slice(2 * hidden, None)
        if reset_after:
            candidate = np.tanh(of_input[:, new] + r * of_state[:, new])
        else:
            candidate = np.tanh(of_input[:, new] + (r * h) @ w_hh[new].T + b_hh[new])
        h = (1 - z) * candidate + z * h
        steps.append(h)
    return np.stack(steps)


@graph_operator("nn.gru", "opaque", tensors=_gru, reference=_gru_arrays)
def gru(  # noqa: PLR0917 - the operands of PyTorch
    x: TensorType,
    h: TensorType,
    w_ih: TensorType,
    w_hh: TensorType,
    b_ih: TensorType,
    b_hh: TensorType,
    *,
    reset_after: bool = True,
) -> TensorType:
    """Infer the hidden states after each step.

    The gate r scales the product of the state with the weights of the new state, with its bias; or,
    without `reset_after`, the state before that product.
    """
    return _check_layer("nn.gru", 3, x, h, w_ih, w_hh, b_ih, b_hh)


def _rnn(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
) -> te.Tensor:
    dtype, inputs = sum_dtype(x.dtype), _inputs(x, w_ih)
    states = te.placeholder((static_shape(x.buffer)[0] + 1, *static_shape(h.buffer)), x.dtype)
    before = _recurrent(states, w_hh, "recurrent", rows=static_shape(h.buffer)[1])

    def element(t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        bias = b_ih[j].astype(dtype) + b_hh[j].astype(dtype)
        return te.tanh(inputs[t - 1, b, j] + before[t, b, j] + bias).astype(x.dtype)

    return _scanned(h, states, element)


def _rnn_arrays(x: Array, *operands: Array) -> Array:
    x, h, w_ih, w_hh, b_ih, b_hh = (widened(each) for each in (x, *operands))
    steps = []
    for step in x:
        h = np.tanh(step @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
        steps.append(h)
    return np.stack(steps)


@graph_operator("nn.rnn", "opaque", tensors=_rnn, reference=_rnn_arrays)
def rnn(  # noqa: PLR0917 - the operands of PyTorch
    x: TensorType,
    h: TensorType,
    w_ih: TensorType,
    w_hh: TensorType,
    b_ih: TensorType,
    b_hh: TensorType,
) -> TensorType:
    """Infer the hidden states after each step; the activation is the hyperbolic tangent."""
    return _check_layer("nn.rnn", 1, x, h, w_ih, w_hh, b_ih, b_hh)


def _check_layer(
    operator: str, gates: int, x: TensorType, h: TensorType, *parameters: TensorType
) -> TensorType:
    """Return the type of the states after each step.

    Raises:
        ModelError: If an operand does not fit.
    """
    check_accepts(operator, "float", x)
    check_same_dtype(operator, x, h, *parameters)
    check_rank(operator, "the input", x, 3)
    check_rank(operator, "the state", h, 2)
    (steps, batch, width), hidden = x.shape, h.shape[1]
    if steps == 0 or not isinstance(hidden, int):
        raise ModelError(f"{operator} over {steps} steps with {hidden} units: expected some")
    check_shape(operator, "the state", h, (batch, hidden))
    w_ih, w_hh, *biases = parameters
    check_shape(operator, "weights of inputs", w_ih, (gates * hidden, width))
    check_shape(operator, "weights of states", w_hh, (gates * hidden, hidden))
    for bias in biases:
        check_shape(operator, "a bias", bias, (gates * hidden,))
    return TensorType((steps, batch, hidden), x.dtype)
