from typing import Any

import numpy as np
import pytest

from compiler.graph.nodes import Array
from tests.graph_operators import assert_computes_its_reference, onnx_results

STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 5, 6


def _layer(gates: int, states: int = 1) -> list[Array]:
    """Return the inputs, the states, the weights and the biases."""
    rng = np.random.default_rng(gates)
    rows = gates * HIDDEN
    shapes = [
        (STEPS, BATCH, WIDTH),
        *[(BATCH, HIDDEN)] * states,
        (rows, WIDTH),
        (rows, HIDDEN),
        (rows,),
        (rows,),
    ]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _reordered(array: Array, order: list[int]) -> Array:
    """Return weights whose gates are in the order of ONNX, for one direction."""
    return np.concatenate([np.split(array, len(order))[gate] for gate in order])[np.newaxis]


def _onnx(op: str, arrays: list[Array], order: list[int], **attrs: Any) -> Array:
    x, h, *others = arrays
    w_ih, w_hh, b_ih, b_hh = (_reordered(each, order) for each in others[-4:])
    biases = np.concatenate([b_ih, b_hh], axis=1)
    lengths = np.full(BATCH, STEPS, np.int32)
    operands = [
        x,
        w_ih,
        w_hh,
        biases,
        lengths,
        h[np.newaxis],
        *(c[np.newaxis] for c in others[:-4]),
    ]
    return onnx_results(op, operands, hidden_size=HIDDEN, **attrs)[0][:, 0]


def test_lstm_layers() -> None:
    arrays = _layer(4, states=2)
    states, _ = assert_computes_its_reference("nn.lstm", arrays)
    np.testing.assert_allclose(states, _onnx("LSTM", arrays, [0, 3, 1, 2]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reset_after", [True, False])
def test_gru_layers_with_both_places_of_the_reset(reset_after: bool) -> None:
    arrays = _layer(3)
    [states] = assert_computes_its_reference("nn.gru", arrays, reset_after=reset_after)
    expected = _onnx("GRU", arrays, [1, 0, 2], linear_before_reset=int(reset_after))
    np.testing.assert_allclose(states, expected, rtol=1e-4, atol=1e-6)


def test_plain_recurrent_layers() -> None:
    arrays = _layer(1)
    [states] = assert_computes_its_reference("nn.rnn", arrays)
    np.testing.assert_allclose(states, _onnx("RNN", arrays, [0]), rtol=1e-4, atol=1e-6)
