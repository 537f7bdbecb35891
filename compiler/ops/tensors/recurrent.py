"""Recurrent layers and one step of them, with the gates and the parameters of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compiler import te
from compiler.ops.error import OperatorError, check_dtype
from compiler.ops.tensors.epilogue import Types, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of

Gate: TypeAlias = Callable[[int], te.Value]
"""Takes the number of a gate and returns an element of it, before the activation."""


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
    dims_of(operator, x, 2)
    types, hidden = _checked(operator, 4, (x, h, w_ih, w_hh, b_ih, b_hh))
    check_same_dtype(operator, x, c)
    check_dims(operator, c, dims_of(operator, h))
    inputs, recurrent = _gates(types, x, w_ih, "inputs"), _gates(types, h, w_hh, "recurrent")

    def gate(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        bias = b_ih[row].astype(types.sum) + b_hh[row].astype(types.sum)
        return inputs[b, row] + recurrent[b, row] + bias

    cell = te.compute(
        h.shape,
        lambda b, j: _next_cell(lambda number: gate(number, b, j), c[b, j].astype(types.sum)),
        name="cell",
    )
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
    dims_of("gru_cell", x, 2)
    types, hidden = _checked("gru_cell", 3, (x, h, w_ih, w_hh, b_ih, b_hh))
    inputs, recurrent = _gates(types, x, w_ih, "inputs"), _gates(types, h, w_hh, "recurrent")

    def of_input(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        return inputs[b, row] + b_ih[row].astype(types.sum)

    def of_state(number: int, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        return recurrent[b, row] + b_hh[row].astype(types.sum)

    def element(b: te.Value, j: te.Value) -> te.Value:
        state = h[b, j].astype(types.sum)
        new = _next_state(lambda n: of_input(n, b, j), lambda n: of_state(n, b, j), state)
        return new.astype(types.result)

    return te.compute(h.shape, element, name="h_next")


def lstm(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    c: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
) -> tuple[te.Tensor, te.Tensor]:
    """Return the hidden states after each step of an LSTM, and the last cell state.

    The inputs of all steps are multiplied by their weights ahead, in one product.

    Args:
        x: The inputs, `[steps, batch, input]`.
        h: The first hidden state, `[batch, hidden]`.
        c: The first cell state, `[batch, hidden]`.
        w_ih: The parameters of `lstm_cell`.
        w_hh: The same.
        b_ih: The same.
        b_hh: The same.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "lstm"
    steps, *_ = dims_of(operator, x, 3)
    types, hidden = _checked(operator, 4, (x, h, w_ih, w_hh, b_ih, b_hh))
    check_same_dtype(operator, x, c)
    batch, _ = dims_of(operator, h)
    check_dims(operator, c, (batch, hidden))
    inputs = _gates_of_inputs(types, x, w_ih)
    states = [_states(steps, tensor) for tensor in (h, c)]
    recurrent = _gates_of_states(types, states[0], w_hh)

    def gate(number: int, t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        row = j + number * hidden
        bias = b_ih[row].astype(types.sum) + b_hh[row].astype(types.sum)
        return inputs[t - 1, b, row] + recurrent[t, b, row] + bias

    def next_cell(t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        before = states[1][t - 1, b, j].astype(types.sum)
        return _next_cell(lambda number: gate(number, t, b, j), before).astype(types.result)

    shape = (steps + 1, batch, hidden)
    cells = te.compute(shape, next_cell, name="c_next")

    def next_state(t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        squashed = te.tanh(cells[t, b, j].astype(types.sum))
        return (te.sigmoid(gate(3, t, b, j)) * squashed).astype(types.result)

    hiddens = te.compute(shape, next_state, name="h_next")
    all_h, all_c = te.scan([_first(h), _first(c)], [hiddens, cells], states, name="states")
    c_last = te.compute(c.shape, lambda b, j: all_c[steps, b, j], name="c_last")
    return _outputs(all_h, steps), c_last


def gru(  # noqa: PLR0917
    x: te.Tensor,
    h: te.Tensor,
    w_ih: te.Tensor,
    w_hh: te.Tensor,
    b_ih: te.Tensor,
    b_hh: te.Tensor,
) -> te.Tensor:
    """Return the hidden states after each step of a GRU.

    The inputs of all steps are multiplied by their weights ahead, in one product.

    Args:
        x: The inputs, `[steps, batch, input]`.
        h: The first hidden state, `[batch, hidden]`.
        w_ih: The parameters of `gru_cell`.
        w_hh: The same.
        b_ih: The same.
        b_hh: The same.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "gru"
    steps, *_ = dims_of(operator, x, 3)
    types, hidden = _checked(operator, 3, (x, h, w_ih, w_hh, b_ih, b_hh))
    inputs, states = _gates_of_inputs(types, x, w_ih), _states(steps, h)
    recurrent = _gates_of_states(types, states, w_hh)

    def element(t: te.Value, b: te.Value, j: te.Value) -> te.Value:
        def of_input(number: int) -> te.Value:
            row = j + number * hidden
            return inputs[t - 1, b, row] + b_ih[row].astype(types.sum)

        def of_state(number: int) -> te.Value:
            row = j + number * hidden
            return recurrent[t, b, row] + b_hh[row].astype(types.sum)

        state = states[t - 1, b, j].astype(types.sum)
        return _next_state(of_input, of_state, state).astype(types.result)

    update = te.compute(states.shape, element, name="h_next")
    return _outputs(te.scan(_first(h), update, states, name="states"), steps)


def _next_cell(gate: Gate, before: te.Value) -> te.Value:
    """Return an element of the next cell state of an LSTM."""
    return te.sigmoid(gate(1)) * before + te.sigmoid(gate(0)) * te.tanh(gate(2))


def _next_state(of_input: Gate, of_state: Gate, before: te.Value) -> te.Value:
    """Return an element of the next state of a GRU."""
    reset = te.sigmoid(of_input(0) + of_state(0))
    update = te.sigmoid(of_input(1) + of_state(1))
    new = te.tanh(of_input(2) + reset * of_state(2))
    return new + update * (before - new)


def _states(steps: int, first: te.Tensor) -> te.Tensor:
    """Return a placeholder for the first state and those after each step."""
    return te.placeholder((steps + 1, *first.shape), first.dtype, f"{first.name}_states")


def _first(state: te.Tensor) -> te.Tensor:
    """Return the first step of a scan."""
    return te.compute((1, *state.shape), lambda _, b, j: state[b, j], name=f"{state.name}_first")


def _outputs(states: te.Tensor, steps: int) -> te.Tensor:
    """Return the states without the first."""
    _, *dims = states.shape
    return te.compute((steps, *dims), lambda t, b, j: states[t + 1, b, j], name="out")


def _gates_of_inputs(types: Types, x: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """Return the products of the inputs of all steps with the weights of all gates."""
    (steps, batch, width), (outputs, _) = dims_of("inputs", x), dims_of("inputs", weights)
    k = te.reduce_axis((0, width), name="k")
    return te.compute(
        (steps, batch, outputs),
        lambda t, b, j: te.sum(types.product(x[t, b, k], weights[j, k]), axis=k),
        name="inputs",
    )


def _gates_of_states(types: Types, states: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """Return the products of the state before each step with the weights of all gates."""
    (count, batch, hidden), (outputs, _) = dims_of("state", states), dims_of("state", weights)
    k = te.reduce_axis((0, hidden), name="k")
    return te.compute(
        (count, batch, outputs),
        lambda t, b, j: te.sum(types.product(states[t - 1, b, k], weights[j, k]), axis=k),
        name="recurrent",
    )


def _checked(operator: str, gates: int, operands: tuple[te.Tensor, ...]) -> tuple[Types, int]:
    """Return the types of the products and the width of the hidden state."""
    x, h, w_ih, w_hh, *biases = operands
    check_dtype(operator, x.dtype, needs_float=True)
    check_same_dtype(operator, *operands)
    (*_, batch, width), (other_batch, hidden) = dims_of(operator, x), dims_of(operator, h, 2)
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
