"""The model of histories accepts what the service may do, and finds each kind of violation."""

from __future__ import annotations

import pytest

from tests.acceptance.chaos.history import Entry, Processes, violations

A, B = "vm/boot/1/10/100/a", "vm/boot/1/20/200/b"
"""Two owners of leases: processes 10 and 20."""


def state(at: float, state: str, owner: str | None = None, num: int = 0, until: float = 0) -> Entry:
    return Entry(at, "s", "job", None, state, owner, until or None, num)


def trial(at: float, number: int, owner: str, session: str) -> Entry:
    return Entry(at, session, "job", number, None, owner, None, None)


CORRECT = [
    state(0, "queued"),
    state(1, "running", A, until=31),
    trial(2, 0, A, "session of a"),
    state(2, "running", A, 1, until=31),
    trial(3, 2, A, "session of a"),
    state(3, "running", A, 2, until=31),
    state(32, "running", B, 2, until=62),
    trial(33, 1, B, "session of b"),
    state(33, "running", B, 3, until=62),
    state(34, "succeeded", None, 3),
]


def test_a_correct_history_has_no_violation() -> None:
    assert violations(CORRECT, Processes()) == []


@pytest.mark.parametrize(
    ("index", "entry", "words"),
    [
        (7, trial(33, 2, B, "session of b"), "the numbers of its trials are"),
        (7, trial(33, 3, B, "session of b"), "the numbers of its trials are"),
        (7, trial(33, 1, B, "session of a"), "under the leases of"),
        (3, state(2, "queued", num=1), "while no coordinator ran it"),
        (8, state(33, "running", B, 1, until=62), "went down"),
        (9, state(34, "succeeded", None, 4), "it counts 4 trials and has 3"),
        (9, state(34, "succeeded", B, 3, until=62), "its owner is"),
        (6, state(20, "running", B, 2, until=50), "whose lease had 11.0 s"),
        (1, state(1, "succeeded"), "from queued to succeeded"),
    ],
)
def test_each_violation_is_found(index: int, entry: Entry, words: str) -> None:
    history = [*CORRECT[:index], entry, *CORRECT[index + 1 :]]
    assert any(words in problem for problem in violations(history, Processes()))


def test_a_lease_may_be_taken_from_a_process_without_its_session_lock() -> None:
    taken = state(20, "running", B, 2, until=50)._replace(lock_was_free=True)
    assert violations([*CORRECT[:6], taken, *CORRECT[7:]], Processes()) == []


def test_a_lease_may_be_taken_from_a_process_that_ended() -> None:
    early = [*CORRECT[:6], state(20, "running", B, 2, until=50), *CORRECT[7:]]
    assert violations(early, Processes()) != []
    assert violations(early, Processes(ended_at={10: 19.0})) == []
    assert violations(early, Processes(ended_at={10: 25.0})) != []
