"""The reference of attention, query by query."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from compiler import ops
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


@pytest.mark.parametrize("is_causal", [False, True])
def test_keys_beyond_a_length_have_no_weight(is_causal: bool) -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(4, 4, 3, 4)), *rng.normal(size=(2, 4, 2, 7, 4))
    lengths = np.array([7, 3, 1, 0], np.int32)
    spec = f"grouped_query_attention:4,4,2,3,7,4,lengths=true,causal={is_causal},past=4:float64"
    got = ops.reference(spec)(q, k, v, lengths)
    for row, length in enumerate((7, 3, 1, 1)):
        whole = f"grouped_query_attention:1,4,2,3,{length},4,causal={is_causal},past=4:float64"
        one = slice(row, row + 1)
        expected = ops.reference(whole)(q[one], k[one, :, :length], v[one, :, :length])
        np.testing.assert_allclose(got[one], expected, rtol=1e-9)


def test_a_softmax_ends_at_the_length_of_its_row() -> None:
    a, lengths = np.random.default_rng(0).normal(size=(3, 2, 5)), np.array([5, 2, -1], np.int32)
    got = ops.reference("softmax:3,2,5,lengths=true:float64")(a, lengths)
    for row, length in enumerate((5, 2, 1)):
        powers = np.exp(a[row, :, :length])
        np.testing.assert_allclose(got[row, :, :length], powers / powers.sum(-1, keepdims=True))
        assert not got[row, :, length:].any()
