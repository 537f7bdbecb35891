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


def test_a_group_of_heads_shares_keys_and_values() -> None:
    def slow(q: Array, k: Array, v: Array, mask: Array | None = None, *, past: int = 4) -> Array:
        out = np.zeros_like(q)
        for b, h, i in itertools.product(*map(range, q.shape[:3])):
            seen = i + past + 1
            scores = k[b, h // 3, :seen] @ q[b, h, i] / 2
            if mask is not None:
                scores += mask[b, 0, i, :seen]
            weights = np.exp(scores)
            out[b, h, i] = weights @ v[b, h // 3, :seen] / weights.sum()
        return out

    shapes = [(2, 6, 3, 4), (2, 2, 9, 4), (2, 2, 9, 4)]
    spec = "grouped_query_attention:2,6,2,3,9,4"
    check(spec, shapes, lambda *a: slow(*a, past=8))
    check(f"{spec},causal=true,past=4", shapes, slow)
    check(f"{spec},causal=true,past=4,mask=true", [*shapes, (2, 1, 3, 9)], slow)
