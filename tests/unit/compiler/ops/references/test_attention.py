"""The reference of attention, query by query."""

from __future__ import annotations

import itertools

import numpy as np

from tests.unit.compiler.ops.reference_checks import Array, check


def test_attention_query_by_query() -> None:
    def slow(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
        out = np.zeros_like(q)
        for b, h, i in itertools.product(*map(range, q.shape[:3])):
            seen = i + 1 if causal else k.shape[2]
            weights = np.exp(k[b, h, :seen] @ q[b, h, i] / 2)
            out[b, h, i] = weights @ v[b, h, :seen] / weights.sum()
        return out

    shapes = [(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)]
    check("attention:2,3,5,5,4", shapes, lambda *a: slow(*a, causal=False))
    check("attention:2,3,5,5,4,causal=true", shapes, lambda *a: slow(*a, causal=True))
