import json
from dataclasses import replace
from typing import Any

import pytest

from compiler.backends.error import DeviceFaultError
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret import error_growth
from compiler.ir.text.printer import script
from compiler.ops import from_spec
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target
from tests.faults.requests import COPY, DEFAULT_TRACE, TARGET
from workers.measure import compare
from workers.measure.compare import CompareRequest
from workers.measure.measure import CandidateMeasurer, build_candidate
from workers.wire.phase import Phase
from workers.wire.request import MeasureRequest, SeatRequest


def measure(workload: str, trace: str = DEFAULT_TRACE, target: str = TARGET) -> Measurement:
    return CandidateMeasurer().measure(MeasureRequest(workload, target, (trace,)))


def test_a_right_candidate_has_run_times_and_its_error() -> None:
    found = measure(script(from_spec("matmul:16,16,16:float32")))
    assert found.error is None, found.message
    assert len(found.run_secs) == 5
    assert all(secs > 0 for secs in found.run_secs)
    assert found.max_error is not None
    assert 0 <= found.max_error < 1e-5
    assert found.build_secs > 0
    assert found.check_secs > 0
    assert found.time_secs > 0


def test_a_candidate_for_cold_caches_is_checked_and_timed() -> None:
    found = measure(script(from_spec("matmul:16,16,16:float32")), target=f"{TARGET} -cache=cold")
    assert found.error is None, found.message
    assert len(found.run_secs) == 5


def test_a_trace_is_replayed() -> None:
    func = from_spec("matmul:16,16,16:float32")
    schedule = Schedule(func)
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    schedule.split(schedule.get_loops(block)[0], [None, 4])
    found = measure(script(func), json.dumps(schedule.trace.to_json()))
    assert found.ok, found.message


def packed_weights(workload: PrimFunc) -> str:
    """Return the trace of a product that copies its weights into panels."""
    schedule = Schedule(workload)
    _, column, _ = schedule.get_loops("C")
    schedule.split(column, [None, 8])
    copy = schedule.cache_read("C", 1, "global")
    schedule.annotate(copy, "buffer_tile", [0, 8, 0])
    return json.dumps(schedule.trace.to_json())


def test_constants_are_packed_before_a_candidate_runs() -> None:
    built: list[Artifact] = []

    def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
        built.append(build_candidate(func, trace, target))
        return built[-1]

    func = from_spec("dense:16,24,8,constant=W")
    request = MeasureRequest(script(func), TARGET, (packed_weights(func),))
    measurer = CandidateMeasurer(build)
    found = measurer.measure(request)
    assert found.ok, found.message
    assert [param.name for param in built[0].constants] == ["W"]
    assert [param.name for param in built[0].packed_copies] == ["W_global"]

    # The finish and a race do the same.
    rounds = CompareRequest(request.workload, TARGET, request.traces * 2, num_rounds=1, seed=0)
    (samples,) = measurer.compare(rounds, lambda phase, contestant: None)
    assert samples["samples"].keys() == {"0", "1"}
    seat = SeatRequest(request.workload, TARGET, trace=request.traces[0])
    assert "seated" in measurer.sit(seat, lambda phase, contestant: None)
    assert measurer.turn(0, 1)["secs"] > 0
    assert all(artifact.constants for artifact in built)


def test_a_long_run_of_a_candidate_alone_is_the_only_one_of_its_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "_LONG_SECS", 0.0)
    alone = CompareRequest(COPY, TARGET, (DEFAULT_TRACE,), num_rounds=2, seed=0)
    in_turns = replace(alone, traces=alone.traces * 2)
    numbers = [
        {len(samples) for round_ in measured(request) for samples in round_["samples"].values()}
        for request in (alone, in_turns)
    ]
    assert numbers == [{1}, {5}]


def measured(request: CompareRequest) -> list[Any]:
    return list(CandidateMeasurer().compare(request, lambda phase, contestant: None))


def test_wrongly_packed_constants_are_found() -> None:
    def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
        wrong = build_candidate(from_spec("dense:16,24,8,constant=A"), DEFAULT_TRACE, target)
        artifact = build_candidate(func, trace, target)
        assert artifact.packer is not None
        assert wrong.packer is not None
        # A packer that does nothing: the copies stay zero.
        idle = replace(artifact.packer, code=wrong.packer.code)
        return replace(artifact, packer=idle)

    func = from_spec("dense:16,24,8,constant=W")
    request = MeasureRequest(script(func), TARGET, (packed_weights(func),))
    assert CandidateMeasurer(build).measure(request).error == ErrorKind.WRONG_RESULT


@pytest.mark.parametrize(
    ("workload", "trace", "target", "message"),
    [
        ("def f(): pass", DEFAULT_TRACE, TARGET, "prim_func"),
        (COPY, "{}", TARGET, "format"),
        (COPY, "not json", TARGET, "JSONDecodeError"),
        (COPY, "[" * 100_000, TARGET, "RecursionError"),
        (COPY, DEFAULT_TRACE, "abacus", "unknown target kind 'abacus'"),
    ],
)
def test_what_does_not_build_is_a_build_error(
    workload: str, trace: str, target: str, message: str
) -> None:
    found = measure(workload, trace, target)
    assert found.error == ErrorKind.BUILD_ERROR
    assert message in found.message


def test_a_trace_of_another_program_is_a_build_error() -> None:
    schedule = Schedule(from_spec("matmul:16,16,16:float32"))
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    schedule.split(schedule.get_loops(block)[2], [None, 4])
    found = measure(COPY, json.dumps(schedule.trace.to_json()))
    assert found.error == ErrorKind.BUILD_ERROR


def test_a_trace_that_changes_how_the_kernel_is_called_is_a_build_error() -> None:
    func = from_spec("matmul:16,16,16:float32")
    schedule = Schedule(func)
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    # The shape stays the same: only the layout tells.
    schedule.transform_layout(block, ("read", 0), lambda i, j: (j, i))
    found = measure(script(func), json.dumps(schedule.trace.to_json()))
    assert found.error == ErrorKind.BUILD_ERROR
    assert "has another layout than the workload's" in found.message


def test_code_for_another_machine_is_a_device_error() -> None:
    found = measure(COPY, target="cpu -mcpu=neoverse-n1 -num-cores=1")
    assert found.error == ErrorKind.DEVICE_ERROR


def test_phases_are_announced_and_the_oracle_only_once() -> None:
    bench = CandidateMeasurer()
    phases: list[Phase] = []
    for _ in range(2):
        assert bench.measure(MeasureRequest(COPY, TARGET, (DEFAULT_TRACE,)), phases.append).ok
    again = [Phase.BUILD, Phase.CHECK, Phase.TIME]
    assert phases == [Phase.ORACLE, *again, *again]


def test_a_long_message_is_cut() -> None:
    def fail(func: PrimFunc, trace: str, target: Target) -> Artifact:
        raise ValueError("x" * 100_000)

    found = CandidateMeasurer(fail).measure(MeasureRequest(COPY, TARGET, (DEFAULT_TRACE,)))
    assert found.error == ErrorKind.BUILD_ERROR
    assert len(found.message) == 4000


def test_a_kernel_that_makes_the_device_unusable_is_a_device_error_and_ends_the_process() -> None:
    def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
        raise DeviceFaultError("illegal address")

    measurer = CandidateMeasurer(build)
    assert not measurer.has_lost_device
    found = measurer.measure(MeasureRequest(COPY, TARGET, (DEFAULT_TRACE,)))
    assert (found.error, found.message) == (ErrorKind.DEVICE_ERROR, "illegal address")
    assert measurer.has_lost_device


def test_a_measurement_says_whether_its_result_was_checked_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for spec, is_large in (("matmul:1024,1024,2", True), ("matmul:16,16,2", False)):
        monkeypatch.setattr(error_growth, "_MAX_SECS_OF_WHOLE", 0.0)
        func = from_spec(spec)
        request = MeasureRequest(script(func), TARGET, (DEFAULT_TRACE,))
        measurement = CandidateMeasurer().measure(request)
        assert measurement.ok, measurement.message
        assert measurement.is_spot_checked == is_large
        assert Measurement.from_json(measurement.to_json()) == measurement
