"""Jobs are stopped, resumed and extended, and several share a budget, over real HTTP."""

from __future__ import annotations

import asyncio

import pytest

import loopwright as lw
from service.wire.models import JobState
from tests.patience import PATIENCE_SECS

MATMUL = "matmul:32,40,64:float32"
MODEL = ["matmul:40,40,64:float32", "matmul:24,40,64:float32"]
TARGET = "cpu -num-cores=1"


def test_a_job_is_stopped_extended_cancelled_and_resumed(client: lw.Client) -> None:
    handle = client.tune(MATMUL, target=TARGET, max_trials=5000)
    next(e for e in handle.events() if e.kind == "trials")
    handle.stop()
    job = handle.wait(timeout_secs=PATIENCE_SECS)
    assert (job.state, job.stop_reason) == (JobState.SUCCEEDED, "stopped")
    assert job.best_interval is not None
    with pytest.raises(lw.ConflictError, match="raise its limit"):
        handle.extend(max_trials=1)

    more = job.num_measured + 8
    handle.prioritize(5)
    assert handle.extend(max_trials=more).state is JobState.QUEUED
    job = handle.wait(timeout_secs=PATIENCE_SECS)
    assert (job.num_measured, job.stop_reason, job.priority) == (more, "budget", 5)
    states = [e.payload["state"] for e in handle.events() if e.kind == "state"]
    assert states == ["queued", "running", "succeeded"] * 2
    with pytest.raises(lw.ConflictError, match="cannot be resumed"):
        handle.resume()


def test_several_workloads_share_a_budget(client: lw.Client) -> None:
    handle = client.tune(MODEL, weights=[1.0, 5.0], target=TARGET, max_trials=48)
    group = handle.wait(timeout_secs=PATIENCE_SECS)
    assert group.num_measured == 48
    assert [job.weight for job in group.jobs] == [1.0, 5.0]
    assert {job.state for job in group.jobs} == {JobState.SUCCEEDED}
    assert group.best_secs is not None
    assert group.default_secs is not None
    assert group.best_secs <= group.default_secs
    for workload, job in zip(MODEL, group.jobs, strict=True):
        best = client.best(workload, target=TARGET)
        assert (best.run_secs, best.record.job_id) == (job.best_secs, job.id)
    handle = client.group(group.id)
    handle.extend(max_trials=56)
    assert handle.wait(timeout_secs=PATIENCE_SECS).num_measured == 56
    with pytest.raises(ValueError, match="1 weights for 2 workloads"):
        client.tune(MODEL, weights=[1.0])
    with pytest.raises(lw.InvalidRequestError, match="too few for 2 tasks"):
        client.tune(MODEL, max_trials=31)


def test_several_workloads_for_those_who_await(client: lw.Client) -> None:
    async def tune() -> set[JobState]:
        async with lw.AsyncClient(client.url) as awaiting:
            handle = await awaiting.tune(MODEL, target=TARGET, max_trials=2000, seed=1)
            await handle.cancel()
            return {job.state for job in (await handle.wait(timeout_secs=PATIENCE_SECS)).jobs}

    assert asyncio.run(tune()) == {JobState.CANCELLED}
