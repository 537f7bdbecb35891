import json

import pytest

from workers.wire.request import MeasureLimits, MeasureRequest


@pytest.mark.parametrize(
    "limits", [None, MeasureLimits(run_timeout_secs=0.5, memory_bytes=1 << 20)]
)
def test_a_request_survives_json(limits: MeasureLimits | None) -> None:
    request = MeasureRequest("text", "cpu", ("{}", "[]"), 1e-3, limits)
    assert MeasureRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_a_part_has_the_traces_asked_for_and_all_the_rest() -> None:
    request = MeasureRequest("text", "cpu", ("a", "b", "c"), 1e-3, MeasureLimits())
    assert request.part([2, 0]) == MeasureRequest("text", "cpu", ("c", "a"), 1e-3, MeasureLimits())


def test_a_request_with_an_unknown_field_is_refused() -> None:
    obj = {**MeasureRequest("text", "cpu", ()).to_json(), "shell": "rm"}
    with pytest.raises(TypeError, match="shell"):
        MeasureRequest.from_json(obj)


def test_limits_that_nothing_could_meet_are_refused() -> None:
    with pytest.raises(ValueError, match="run_timeout_secs is 0: expected a number above 0"):
        MeasureLimits(run_timeout_secs=0)
    with pytest.raises(ValueError, match="build_timeout_secs is inf"):
        MeasureLimits(build_timeout_secs=float("inf"))
    with pytest.raises(ValueError, match="memory_bytes is -1"):
        MeasureLimits(memory_bytes=-1)
