"""The contract of `RequestMeasurer`. Subclass `RequestMeasurerContract`."""

from __future__ import annotations

import pytest

from compiler.runtime.measurement import ErrorKind
from tests.faults.requests import COPY, DEFAULT_TRACE, LIMITS, TARGET, request
from workers.measure.compare import CompareRequest
from workers.measure.request_measurer import RequestMeasurer

BAD_TRACE = '{"format": 1, "instructions": [["no such primitive", [], {}, []]]}'


def comparison(*traces: str) -> CompareRequest:
    return CompareRequest(COPY, TARGET, traces, num_rounds=2, seed=0, limits=LIMITS)


class RequestMeasurerContract:
    """Tests of a measurer of requests, with real children: override the fixture."""

    @pytest.fixture
    def measurer(self) -> RequestMeasurer:
        raise NotImplementedError

    def test_every_trace_is_measured_once(self, measurer: RequestMeasurer) -> None:
        pairs = list(measurer.measure(request(*[DEFAULT_TRACE] * 3)))
        assert sorted(index for index, _ in pairs) == [0, 1, 2]
        assert all(m.ok and m.worker and m.toolchain for _, m in pairs)

    def test_a_request_without_traces_has_no_measurements(self, measurer: RequestMeasurer) -> None:
        assert list(measurer.measure(request())) == []

    def test_a_failure_is_a_measurement_and_costs_the_others_nothing(
        self, measurer: RequestMeasurer
    ) -> None:
        measured = dict(measurer.measure(request(DEFAULT_TRACE, BAD_TRACE, DEFAULT_TRACE)))
        assert measured[1].error is ErrorKind.BUILD_ERROR
        assert measured[0].ok
        assert measured[2].ok

    def test_rounds_have_a_measurement_of_each_contestant(self, measurer: RequestMeasurer) -> None:
        rounds = list(measurer.compare(comparison(DEFAULT_TRACE, BAD_TRACE)))
        errors = [[m.error for m in measured] for measured in rounds]
        assert errors == [[None, ErrorKind.BUILD_ERROR]] * 2

    def test_it_measures_again_after_an_iterator_was_left(self, measurer: RequestMeasurer) -> None:
        results = measurer.measure(request(*[DEFAULT_TRACE] * 3))
        assert next(results)[1].ok
        getattr(results, "close", lambda: None)()
        assert len(list(measurer.measure(request(DEFAULT_TRACE)))) == 1
