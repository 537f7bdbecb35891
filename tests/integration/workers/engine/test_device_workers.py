"""An engine on a host with several devices: one worker each, here for emulated GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compiler.backends.cuda.nvrtc import nvrtc_release
from compiler.target.emulated import EMULATED_GPUS
from compiler.target.target import Target
from tests.faults.requests import COPY, DEFAULT_TRACE, LIMITS, request
from workers.engine.dask_engine import DaskEngine
from workers.engine.engine import NoWorkerError, WorkerFacts
from workers.wire.request import MeasureRequest

pytestmark = pytest.mark.skipif(nvrtc_release() is None, reason="no NVRTC on this host")

GPUS = {"h200-emulated-0", "h200-emulated-1"}
H200 = "cuda -gpu=h200 -emulated"


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(EMULATED_GPUS, "h200,h200")
        engine = DaskEngine.embedded(num_workers=1)
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def workers(engine: DaskEngine) -> dict[str, WorkerFacts]:
    return {worker.name.rpartition("/")[2]: worker for worker in engine.workers()}


def gpu_request(num_candidates: int, target: str = H200) -> MeasureRequest:
    return MeasureRequest(COPY, target, (DEFAULT_TRACE,) * num_candidates)


def test_each_device_has_a_worker_of_its_own(workers: dict[str, WorkerFacts]) -> None:
    assert workers.keys() == {"0", *GPUS}
    assert workers["0"].label == Target("cpu").label
    assert "device" not in workers["0"].facts
    for name in GPUS:
        worker = workers[name]
        assert worker.label == "cuda/h200-emulated"
        assert "NVRTC" in worker.facts["self_test"]["toolchain"]
        no_state = {"name": name, "product": "", "uuid": "", "is_emulated": True}
        assert worker.facts["device"] == no_state
        assert worker.facts["sample"] is None, "an estimate never varies"


def test_two_gpus_work_on_one_request_and_each_measurement_names_its_gpu(
    engine: DaskEngine, workers: dict[str, WorkerFacts]
) -> None:
    results = dict(engine.measure(gpu_request(12)))
    assert sorted(results) == list(range(12))
    assert {measurement.message for measurement in results.values()} == {""}
    for measurement in results.values():
        assert measurement.resources is not None
        assert measurement.resources.bank_conflicts == 1, "a copy does not use shared memory"
    used = {measurement.worker for measurement in results.values()}
    assert used == {workers[name].name for name in GPUS}


def test_the_cpu_is_measured_by_its_own_worker(
    engine: DaskEngine, workers: dict[str, WorkerFacts]
) -> None:
    ((_, measurement),) = engine.measure(request(DEFAULT_TRACE, limits=LIMITS))
    assert measurement.worker == workers["0"].name


def test_a_gpu_that_the_host_lacks_is_refused_with_those_that_it_has(engine: DaskEngine) -> None:
    with pytest.raises(NoWorkerError, match=r"cuda/a100-emulated.*there is: .*cuda/h200-emulated"):
        list(engine.measure(gpu_request(1, "cuda -gpu=a100 -emulated")))
