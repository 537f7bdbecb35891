"""The share of a request in the workers of a label."""

from __future__ import annotations

from workers.engine.batch_client import Slots


def test_owners_share_the_workers_and_their_requests_the_part_of_each() -> None:
    slots = Slots(200, {"many": 30, "few": 10})
    assert slots.share("few") == 10.0
    assert slots.share("many") == 100 / 30
    assert slots.num_requesters == 40


def test_a_new_request_counts_beside_the_others() -> None:
    assert Slots(60, {"a": 3, "b": 1}).share("c") == 20.0
    assert Slots(60).share("c") == 60.0
    assert Slots().share("c") == 0.0
