"""One step of recurrent layers, with the gates and the parameters of PyTorch's cells."""

from __future__ import annotations

from compiler import te
from compiler.ops.error import OperatorError, check_dtype
from compiler.ops.tensors.epilogue import Types, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of


def lstm_cell(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    c: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
) -> tuple[te.Tensor, te.Tensor]:
    """Return the next hidden state and the next cell state of an LSTM.

    Args:
        x: The input, `[batch, input]`.
        h: The hidden state, `[batch, hidden]`.
        c: The cell state, `[batch, hidden]`.
        w_ih: `[4 * hidden, input]`: the weights of the gates i, f, g and o.
        w_hh: `[4 * hidden, hidden]`.
        b_ih: `[4 * hidden]`.
        b_hh: `[4 * hidden]`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "lstm_cell"
    types, hidden = _checked(operator, 4, (x, h, w_ih, w_hh, b_ih, b_hh))
    check_same_dtype(operator, x, c)
    check_dims(operator, c, dims_of(operator, h))
    inputs, recurrent = _gates(types, x, w_ih, "inputs"), _gates(types, h, w_hh, "recurrent")

    def gate(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        bias = b_ih[row].astype(types.sum) + b_hh[row].astype(types.sum)
        return inputs[b, row] + recurrent[b, row] + bias

    def next_cell(b: te.Value, j: te.Value) -> te.Value:
        remembered = te.sigmoid(gate(1, b, j)) * c[b, j].astype(types.sum)
        return remembered + te.sigmoid(gate(0, b, j)) * te.tanh(gate(2, b, j))

    cell = te.compute(h.shape, next_cell, name="cell")
    h_next = te.compute(
        h.shape,
        lambda b, j: (te.sigmoid(gate(3, b, j)) * te.tanh(cell[b, j])).astype(types.result),
        name="h_next",
    )
    c_next = te.compute(h.shape, lambda b, j: cell[b, j].astype(types.result), name="c_next")
    return h_next, c_next


def gru_cell(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
) -> te.Tensor:
    """Return the next hidden state of a GRU.

    Args:
        x: The input, `[batch, input]`.
        h: The hidden state, `[batch, hidden]`.
        w_ih: `[3 * hidden, input]`: the weights of the gates r and z, and of the new state.
        w_hh: `[3 * hidden, hidden]`.
        b_ih: `[3 * hidden]`.
        b_hh: `[3 * hidden]`: that of the new state is scaled by the gate r, too.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    types, hidden = _checked("gru_cell", 3, (x, h, w_ih, w_hh, b_ih, b_hh))
    inputs, recurrent = _gates(types, x, w_ih, "inputs"), _gates(types, h, w_hh, "recurrent")

    def of_input(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        return inputs[b, row] + b_ih[row].astype(types.sum)

    def of_state(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        return recurrent[b, row] + b_hh[row].astype(types.sum)

    def element(b: te.Value, j: te.Value) -> te.Value:
        reset = te.sigmoid(of_input(0, b, j) + of_state(0, b, j))
        update = te.sigmoid(of_input(1, b, j) + of_state(1, b, j))
        new = te.tanh(of_input(2, b, j) + reset * of_state(2, b, j))
        return (new + update * (h[b, j].astype(types.sum) - new)).astype(types.result)

    return te.compute(h.shape, element, name="h_next")


def _checked(operator: str, gates: int, operands: tuple[te.Tensor, ...]) -> tuple[Types, int]:
    """Return the types of the products and the width of the hidden state."""
    x, h, w_ih, w_hh, *biases = operands
    check_dtype(operator, x.dtype, needs_float=True)
    check_same_dtype(operator, *operands)
    (batch, width), (other_batch, hidden) = dims_of(operator, x, 2), dims_of(operator, h, 2)
    if batch != other_batch:
        raise OperatorError(f"{operator}: {x.name} has {batch} rows, {h.name} has {other_batch}")
    check_dims(operator, w_ih, (gates * hidden, width))
    check_dims(operator, w_hh, (gates * hidden, hidden))
    for bias in biases:
        check_dims(operator, bias, (gates * hidden,))
    return check_types(operator, x.dtype, None, None), hidden


def _gates(types: Types, rows: te.Tensor, weights: te.Tensor, name: str) -> te.Tensor:
    """Return the products of rows with the weights of all gates, in the type of sums."""
    (batch, width), (outputs, _) = dims_of(name, rows), dims_of(name, weights)
    k = te.reduce_axis((0, width), name="k")
    return te.compute(
        (batch, outputs),
        lambda b, j: te.sum(types.product(rows[b, k], weights[j, k]), axis=k),
        name=name,
    )
