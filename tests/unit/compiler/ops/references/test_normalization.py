"""References of norms against their definitions, row by row."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.unit.compiler.ops.reference_checks import Array, check, given


def test_norms() -> None:
    def rows(a: Array, gamma: Array, beta: Array) -> Array:
        out = [(r - r.mean()) / np.sqrt(((r - r.mean()) ** 2).sum() / r.size + 1e-5) for r in a]
        return np.array(out) * gamma + beta

    check("layer_norm:5,8", [(5, 8), (8,), (8,)], rows)
    check("layer_norm:5,4,2,axis=1", [(5, 4, 2), (4, 2), (4, 2)], rows)
    check(
        "rms_norm:5,8",
        [(5, 8), (8,)],
        lambda a, w: np.array([r / np.sqrt((r @ r) / r.size + 1e-5) for r in a]) * w,
    )
    check(
        "rms_norm:5,8,residual=true",
        [(5, 8), (8,), (5, 8)],
        lambda a, w, r: np.array([x / np.sqrt((x @ x) / x.size + 1e-5) for x in a + r]) * w,
    )
    shapes = [(5, 8), (8,), (8,), (5, 8)]
    check("layer_norm:5,8,residual=true", shapes, lambda a, g, b, r: rows(a + r, g, b))
    a, gamma, beta, mean, variance = given((2, 3, 4), (3,), (3,), (3,), (3,))
    got = ops.reference("batch_norm:2,3,4:float64")(a, gamma, beta, mean, abs(variance))
    for c in range(3):
        scale = gamma[c] / np.sqrt(abs(variance[c]) + 1e-5)
        np.testing.assert_allclose(got[:, c], (a[:, c] - mean[c]) * scale + beta[c])


def test_groups_of_channels() -> None:
    def slow(a: Array, gamma: Array, beta: Array) -> Array:
        out = np.empty_like(a)
        for n, g in np.ndindex(2, 3):
            part = a[n, 2 * g : 2 * g + 2]
            out[n, 2 * g : 2 * g + 2] = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
        scaled = out * gamma[:, None, None] + beta[:, None, None]
        return np.asarray(scaled / (1 + np.exp(-scaled)))

    shapes = [(2, 6, 4, 5), (6,), (6,)]
    check("group_norm:2,6,4,5,groups=3,activation=silu", shapes, slow)
