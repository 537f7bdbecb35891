"""Recurrent layers and steps of them by NumPy."""

from __future__ import annotations

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.elementwise import ACTIVATIONS

_sigmoid = ACTIVATIONS["sigmoid"]


def lstm_cell(_: Options, x: Array, h: Array, c: Array, *parameters: Array) -> tuple[Array, Array]:
    """Return the next hidden state and the next cell state."""
    w_ih, w_hh, b_ih, b_hh = parameters
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=1)
    cell = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(cell), cell


def gru_cell(_: Options, x: Array, h: Array, *parameters: Array) -> Array:
    """Return the next hidden state."""
    w_ih, w_hh, b_ih, b_hh = parameters
    r, z, n = np.split(x @ w_ih.T + b_ih, 3, axis=1)
    h_r, h_z, h_n = np.split(h @ w_hh.T + b_hh, 3, axis=1)
    update = _sigmoid(z + h_z)
    return np.asarray((1 - update) * np.tanh(n + _sigmoid(r + h_r) * h_n) + update * h)


def lstm(p: Options, x: Array, h: Array, c: Array, *parameters: Array) -> tuple[Array, Array]:
    """Return the hidden states after each step, and the last cell state."""
    out = np.empty((len(x), *h.shape), x.dtype)
    for t, row in enumerate(x):
        h, c = lstm_cell(p, row, h, c, *parameters)
        out[t] = h
    return out, c


def gru(p: Options, x: Array, h: Array, *parameters: Array) -> Array:
    """Return the hidden states after each step."""
    out = np.empty((len(x), *h.shape), x.dtype)
    for t, row in enumerate(x):
        h = out[t] = gru_cell(p, row, h, *parameters)
    return out
