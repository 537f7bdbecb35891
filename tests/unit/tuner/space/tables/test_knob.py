from itertools import product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.space.tables.knob import ChoiceKnob, TileKnob

tile_knobs = st.builds(
    TileKnob,
    extent=st.integers(1, 96),
    parts=st.integers(2, 4),
    max_innermost=st.integers(1, 32),
)


@given(extent=st.integers(1, 24), parts=st.integers(2, 3), limit=st.integers(1, 8))
def test_options_are_all_factorizations_within_the_limit(
    extent: int, parts: int, limit: int
) -> None:
    every = product(range(1, extent + 1), repeat=parts)
    legal = [f for f in every if prod(f) == extent and f[-1] <= limit]
    assert [tuple(row) for row in TileKnob(extent, parts, limit).options.tolist()] == sorted(legal)


@given(knob=tile_knobs, data=st.data())
def test_a_tile_decision_leads_back_to_its_choice(knob: TileKnob, data: st.DataObject) -> None:
    choice = data.draw(st.integers(0, len(knob.options) - 1))
    assert knob.choice(knob.decision(choice)) == choice


def test_a_decision_that_is_no_option_has_no_choice() -> None:
    knob = TileKnob(16, 3, 4)
    assert knob.choice((2, 2, 2)) is None  # another product
    assert knob.choice((1, 2, 8)) is None  # over the limit
    assert knob.choice((4, 4)) is None  # another number of parts
    assert knob.choice(3) is None
    assert ChoiceKnob((0, 16)).choice(2) is None
    assert ChoiceKnob((0, 16)).choice((1,)) is None


@given(knob=tile_knobs, seed=st.integers(0, 99))
def test_a_neighbour_differs_by_one_prime_in_two_parts(knob: TileKnob, seed: int) -> None:
    rng = np.random.default_rng(seed)
    choices = rng.integers(len(knob.options), size=32)
    moved = knob.neighbours(choices, rng)
    for old, new in zip(knob.options[choices], knob.options[moved], strict=True):
        changed = [(int(a), int(b)) for a, b in zip(old, new, strict=True) if a != b]
        assert len(changed) in (0, 2)
        if changed:
            (a, b), (c, d) = changed
            factor = max(a, b) // min(a, b)
            assert factor == max(c, d) // min(c, d)
            assert all(factor % p for p in range(2, factor)), f"{factor} is a prime"


def test_neighbours_reach_every_option() -> None:
    knob = TileKnob(24, 3, 6)
    rng = np.random.default_rng(0)
    reached = {0}
    for _ in range(60):
        reached |= set(knob.neighbours(np.array(sorted(reached)), rng).tolist())
    assert reached == set(range(len(knob.options)))


def test_steps_of_a_choice_stay_within_the_ends() -> None:
    knob = ChoiceKnob((0, 16, 64))
    moved = knob.neighbours(np.array([0, 1, 2] * 20), np.random.default_rng(0))
    assert set(moved.tolist()) == {0, 1, 2}


def test_a_huge_tiling_is_sampled() -> None:
    knob = TileKnob(2**10 * 3**5 * 5**3 * 7, 5, 1 << 30)
    assert 1000 < len(knob.options) <= 1 << 14
    assert (knob.options.prod(axis=1) == knob.extent).all()
