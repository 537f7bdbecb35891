from compiler.runtime.measurement import Measurement
from workers.engine.batch_size import BatchSizer


def costing(secs: float) -> Measurement:
    return Measurement(run_secs=(1e-3,), build_secs=secs)


def test_the_first_candidate_of_a_workload_travels_alone() -> None:
    assert BatchSizer().size("w", 1000, 1) == 1


def test_batches_of_quick_candidates_grow() -> None:
    sizer = BatchSizer()
    for _ in range(8):
        sizer.learn("w", [costing(0.05)] * 10)
    assert 28 <= sizer.size("w", 1000, 1) <= 30
    for _ in range(16):
        sizer.learn("w", [costing(1e-6)])
    assert sizer.size("w", 1000, 1) == 64


def test_a_slow_candidate_travels_alone() -> None:
    sizer = BatchSizer()
    sizer.learn("w", [costing(20.0)])
    assert sizer.size("w", 1000, 1) == 1


def test_every_slot_gets_a_share() -> None:
    sizer = BatchSizer()
    sizer.learn("w", [costing(0.05)])
    assert sizer.size("w", 16, 4) == 4
    assert sizer.size("w", 1, 4) == 1
