"""Recurrent layers and one step of them, with the gates and the parameters of PyTorch's cells."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_extents
from compiler.ops.operator import operator
from compiler.ops.references import recurrent as references
from compiler.ops.tensors import recurrent as tensors


@operator(tensors.lstm_cell, reference=references.lstm_cell)
def lstm_cell(batch: int, input_size: int, hidden_size: int, dtype: DType = "float32") -> PrimFunc:
    """Compute one step of an LSTM: `h_next` and `c_next` of an input and two states.

    The inputs are `x[batch, input_size]`, `h` and `c[batch, hidden_size]`, the weights
    `w_ih[4 * hidden_size, input_size]` and `w_hh[4 * hidden_size, hidden_size]`, and `b_ih` and
    `b_hh`. The gates are in the order i, f, g, o.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    x, h, *parameters = _inputs("lstm_cell", 4, batch, input_size, hidden_size, dtype)
    inputs = [x, h, operand((batch, hidden_size), dtype, "c"), *parameters]
    return build("lstm_cell", inputs, *tensors.lstm_cell(*inputs))


@operator(tensors.gru_cell, reference=references.gru_cell)
def gru_cell(batch: int, input_size: int, hidden_size: int, dtype: DType = "float32") -> PrimFunc:
    """Compute one step of a GRU: `h_next` of an input and a state.

    The inputs are `x[batch, input_size]`, `h[batch, hidden_size]`, the weights
    `w_ih[3 * hidden_size, input_size]` and `w_hh[3 * hidden_size, hidden_size]`, and `b_ih` and
    `b_hh`. The gates are in the order r, z, n.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    inputs = _inputs("gru_cell", 3, batch, input_size, hidden_size, dtype)
    return build("gru_cell", inputs, tensors.gru_cell(*inputs))


@operator(tensors.lstm, reference=references.lstm)
def lstm(
    steps: int, batch: int, input_size: int, hidden_size: int, dtype: DType = "float32"
) -> PrimFunc:
    """Compute all steps of an LSTM: `out[steps, batch, hidden_size]` and `c_last`.

    The inputs are `x[steps, batch, input_size]`, and states, weights and biases as `lstm_cell` has
    them.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("lstm", steps=steps)
    x, h, *parameters = _inputs("lstm", 4, batch, input_size, hidden_size, dtype, (steps,))
    inputs = [x, h, operand((batch, hidden_size), dtype, "c"), *parameters]
    return build("lstm", inputs, *tensors.lstm(*inputs))


@operator(tensors.gru, reference=references.gru)
def gru(
    steps: int, batch: int, input_size: int, hidden_size: int, dtype: DType = "float32"
) -> PrimFunc:
    """Compute all steps of a GRU: `out[steps, batch, hidden_size]`.

    The inputs are `x[steps, batch, input_size]`, and the state, weights and biases as `gru_cell`
    has them.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("gru", steps=steps)
    inputs = _inputs("gru", 3, batch, input_size, hidden_size, dtype, (steps,))
    return build("gru", inputs, tensors.gru(*inputs))


def _inputs(  # noqa: PLR0917
    name: str,
    gates: int,
    batch: int,
    input_size: int,
    hidden_size: int,
    dtype: DType,
    steps: tuple[int, ...] = (),
) -> list[te.Tensor]:
    """Return the input, the hidden state, and the weights and biases of all gates."""
    check_extents(name, batch=batch, input_size=input_size, hidden_size=hidden_size)
    rows = gates * hidden_size
    shapes = {
        "x": (*steps, batch, input_size),
        "h": (batch, hidden_size),
        "w_ih": (rows, input_size),
        "w_hh": (rows, hidden_size),
        "b_ih": (rows,),
        "b_hh": (rows,),
    }
    return [operand(shape, dtype, key) for key, shape in shapes.items()]
