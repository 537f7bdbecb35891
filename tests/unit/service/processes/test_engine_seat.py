from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from compiler.runtime.measurement import Measurement
from service.processes.engine_seat import EngineSeat
from service.processes.engine_supervisor import EngineSupervisor
from workers.engine.engine import Requester, Standing
from workers.wire.request import MeasureRequest

REQUEST = MeasureRequest(workload="", target="cpu", traces=("a",))


class Workers:
    """Keeps who asks."""

    def __init__(self) -> None:
        self.requesters: list[Requester] = []

    def measure(self, _: MeasureRequest, requester: Requester) -> Iterator[tuple[int, Measurement]]:
        self.requesters.append(requester)
        return iter(())

    def share(self, target: str, owner: str) -> float:
        return {("cpu", "ann"): 8.0}[target, owner]


def seat_at(workers: Workers) -> EngineSeat:
    return EngineSeat(cast(EngineSupervisor, workers))


def test_an_interrupt_concerns_all_current_requests_and_no_later_one() -> None:
    workers = Workers()
    seat = seat_at(workers)
    seat.measure(REQUEST)
    seat.measure(REQUEST)  # the next round, beside the first
    assert not any(requester.is_interrupted() for requester in workers.requesters)
    seat.interrupt()
    seat.measure(REQUEST)
    assert [r.is_interrupted() for r in workers.requesters] == [True, True, False]


def test_the_requests_of_a_seat_share_a_name_which_no_other_has() -> None:
    workers = Workers()
    first, second = seat_at(workers), seat_at(workers)
    first.stand(lambda: Standing("ann", 2))
    for seat in (first, first, second):
        seat.measure(REQUEST)
    names = [requester.name for requester in workers.requesters]
    assert names[0] == names[1] != names[2]
    assert workers.requesters[1].standing() == Standing("ann", 2)


def test_the_share_of_a_seat_is_that_of_the_owner_whose_job_it_measures() -> None:
    seat = seat_at(Workers())
    seat.stand(lambda: Standing("ann", 2))
    assert seat.share("cpu") == 8.0
