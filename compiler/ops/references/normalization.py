"""Normalizations and attention by NumPy."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.elementwise import ACTIVATIONS


def softmax(p: Options, a: Array, *lengths: Array) -> Array:
    """Return exp(a) over its sum along an axis."""
    for each in lengths:
        a = np.where(_within(each, a.shape, p.axis % a.ndim), a, -np.inf)
    powers = np.exp(a - a.max(p.axis, keepdims=True))
    return np.asarray(powers / powers.sum(p.axis, keepdims=True))


def _within(lengths: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Return which elements are before the end of their row of a batch."""
    rows = np.maximum(lengths, 1).reshape(-1, *[1] * (len(shape) - 1))
    return np.asarray(np.indices(shape)[axis] < rows)


def log_softmax(p: Options, a: Array) -> Array:
    """Return the logarithm of `softmax`."""
    shifted = a - a.max(p.axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(p.axis, keepdims=True)))


def _inner(p: Options, a: Array) -> tuple[int, ...]:
    return tuple(range(p.axis % a.ndim, a.ndim))


def layer_norm(p: Options, a: Array, gamma: Array, beta: Array, *residual: Array) -> Array:
    """Return rows of mean 0 and variance 1, scaled and shifted."""
    a, axes = sum(residual, a), _inner(p, a)
    centred = a - a.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt(a.var(axes, keepdims=True) + p.epsilon) * gamma + beta)


def group_norm(p: Options, a: Array, gamma: Array, beta: Array) -> Array:
    """Return groups of channels of mean 0 and variance 1, scaled and shifted by channel."""
    rows = a.reshape(a.shape[0], p.groups, -1)
    centred = rows - rows.mean(2, keepdims=True)
    normal = (centred / np.sqrt(rows.var(2, keepdims=True) + p.epsilon)).reshape(a.shape)
    shape = (-1, *[1] * (a.ndim - 2))
    return ACTIVATIONS[p.activation](normal * gamma.reshape(shape) + beta.reshape(shape))


def rms_norm(p: Options, a: Array, weight: Array, *residual: Array) -> Array:
    """Return rows of mean square 1, scaled."""
    a = sum(residual, a)
    squares = (a * a).mean(_inner(p, a), keepdims=True)
    return np.asarray(a / np.sqrt(squares + p.epsilon) * weight)


def batch_norm(p: Options, a: Array, *channels: Array) -> Array:
    """Return channels scaled and shifted by their statistics."""
    shape = [1] * a.ndim
    shape[p.axis] = -1
    gamma, beta, mean, variance = (c.reshape(shape) for c in channels)
    return np.asarray((a - mean) / np.sqrt(variance + p.epsilon) * gamma + beta)


def attention(p: Options, q: Array, k: Array, v: Array) -> Array:
    """Return the mean of the values by the softmax of the scores."""
    scale = 1 / math.sqrt(p.d) if p.scale is None else p.scale
    scores = q @ k.swapaxes(-1, -2) * scale
    if p.causal:
        scores = np.where(np.tri(p.m, p.n, dtype=bool), scores, -np.inf)
    return softmax(SimpleNamespace(axis=-1), scores) @ v


def grouped_query_attention(p: Options, q: Array, k: Array, v: Array, *others: Array) -> Array:
    """Return attention with each head of keys and values repeated for its group."""
    mask, lengths = others[: int(p.mask)], others[int(p.mask) :]
    keys, values = (np.repeat(x, p.heads // p.kv_heads, axis=1) for x in (k, v))
    scale = 1 / math.sqrt(p.d) if p.scale is None else p.scale
    scores = sum(mask, q @ keys.swapaxes(-1, -2) * scale)
    if p.causal:
        scores = np.where(np.tri(p.m, p.n, p.past, dtype=bool), scores, -np.inf)
    for each in lengths:
        scores = np.where(_within(each, scores.shape, 3), scores, -np.inf)
    return np.asarray(softmax(SimpleNamespace(axis=-1), scores) @ values)
