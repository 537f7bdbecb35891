"""References of recurrent cells, element by element."""

from __future__ import annotations

import math

import numpy as np

from compiler import ops
from tests.unit.compiler.ops.reference_checks import Array, check, given

SHAPES = [(2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_step_of_an_lstm() -> None:
    x, h, c, w_ih, w_hh, b_ih, b_hh = arrays = given(*SHAPES)
    h_next, c_next = ops.reference("lstm_cell:2,3,4:float64")(*arrays)
    for b, j in np.ndindex(2, 4):
        i, f, g, o = (
            w_ih[row] @ x[b] + w_hh[row] @ h[b] + b_ih[row] + b_hh[row] for row in range(j, 16, 4)
        )
        cell = sigmoid(f) * c[b, j] + sigmoid(i) * math.tanh(g)
        np.testing.assert_allclose(c_next[b, j], cell)
        np.testing.assert_allclose(h_next[b, j], sigmoid(o) * math.tanh(cell))


def test_a_step_of_a_gru() -> None:
    def slow(x: Array, h: Array, *parameters: Array) -> Array:
        w_ih, w_hh, b_ih, b_hh = parameters
        out = np.empty_like(h)
        for b, j in np.ndindex(2, 4):
            r, z, n = (w_ih[row] @ x[b] + b_ih[row] for row in range(j, 12, 4))
            h_r, h_z, h_n = (w_hh[row] @ h[b] + b_hh[row] for row in range(j, 12, 4))
            new = math.tanh(n + sigmoid(r + h_r) * h_n)
            update = sigmoid(z + h_z)
            out[b, j] = (1 - update) * new + update * h[b, j]
        return out

    shapes = [(2, 3), (2, 4), (12, 3), (12, 4), (12,), (12,)]
    check("gru_cell:2,3,4", shapes, slow)


def test_sequences_are_steps_in_order() -> None:
    x, h, c, w_ih, w_hh, b_ih, b_hh = given((5, 2, 3), *SHAPES[1:])
    out, c_last = ops.reference("lstm:5,2,3,4:float64")(x, h, c, w_ih, w_hh, b_ih, b_hh)
    state, cell = h, c
    for t in range(5):
        step = ops.reference("lstm_cell:2,3,4:float64")
        state, cell = step(x[t], state, cell, w_ih, w_hh, b_ih, b_hh)
        np.testing.assert_allclose(out[t], state)
    np.testing.assert_allclose(c_last, cell)
    parameters = [w_ih[:12], w_hh[:12], b_ih[:12], b_hh[:12]]
    out, state = ops.reference("gru:5,2,3,4:float64")(x, h, *parameters), h
    for t in range(5):
        state = ops.reference("gru_cell:2,3,4:float64")(x[t], state, *parameters)
        np.testing.assert_allclose(out[t], state)
