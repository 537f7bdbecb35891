"""A runner and an engine keep the contract of all that measures requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.contracts.request_measurer import RequestMeasurerContract
from workers.child.runner import ChildRunner
from workers.engine.dask_engine import DaskEngine
from workers.measure.request_measurer import RequestMeasurer


@pytest.fixture(scope="module", params=["ChildRunner", "DaskEngine"])
def shared(request: pytest.FixtureRequest) -> Iterator[RequestMeasurer]:
    made = ChildRunner() if request.param == "ChildRunner" else DaskEngine.embedded()
    with closing(made) as measurer:
        yield measurer


class TestRequestMeasurers(RequestMeasurerContract):
    @pytest.fixture
    def measurer(self, shared: RequestMeasurer) -> RequestMeasurer:
        return shared
