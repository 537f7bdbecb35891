"""A few kernels are chosen of which some is fast at each size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.shapes.kernel_choice import MIN_GAIN, choose_kernels


def test_kernels_that_complement_each_other_are_chosen() -> None:
    losses = np.log([[1.0, 1.0, 2.0, 2.0], [1.3, 1.3, 1.3, 1.3], [2.0, 2.0, 1.0, 1.0]])
    assert choose_kernels(losses) == [0, 2]


def test_one_kernel_is_enough_if_others_gain_nothing() -> None:
    losses = np.log([[1.001, 1.0, 1.0], [1.0, 1.5, 1.5]])
    assert choose_kernels(losses) == [0]


def test_the_limit_holds_and_the_best_compromise_remains() -> None:
    losses = np.log([[1.0, 1.6, 1.6], [1.1, 1.1, 1.1], [1.6, 1.0, 1.6], [1.6, 1.6, 1.0]])
    assert choose_kernels(losses, most=1) == [1]


def test_a_kernel_that_fails_at_a_size_may_serve_others() -> None:
    losses = np.array([[0.0, np.inf], [1.0, 0.0]])
    assert choose_kernels(losses) == [0, 1]


@given(
    st.integers(0, 1 << 30),
    st.integers(1, 12),
    st.integers(1, 10),
    st.integers(1, 4),
)
def test_no_single_exchange_helps(seed: int, rows: int, columns: int, most: int) -> None:
    losses = np.random.default_rng(seed).random((rows, columns))
    losses -= losses.min(axis=0)
    chosen = choose_kernels(losses, most)
    assert 1 <= len(chosen) <= most
    loss = losses[chosen].min(axis=0).mean()
    for at in range(len(chosen)):
        rest = chosen[:at] + chosen[at + 1 :]
        for row in range(rows):
            assert losses[[*rest, row]].min(axis=0).mean() > loss - MIN_GAIN
