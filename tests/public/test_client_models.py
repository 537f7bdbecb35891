"""Whole models tuned on a real server, without their weights."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import loopwright as lw
from compiler.graph.reference import run_reference
from compiler.package.lower_model import lower_model
from tests.integration.service.models.networks import network
from tests.patience import PATIENCE_SECS
from tests.plan_runner import random_inputs_of

TARGET = "cpu -num-cores=1"


def test_a_model_is_tuned_on_a_server_and_built_here(client: lw.Client) -> None:
    graph = network()
    before = {job.id for job in client.jobs()}
    compiled = client.compile(graph, target=TARGET, trials=16, progress=False)
    inputs = random_inputs_of(graph)
    expected = run_reference(graph, inputs)["probabilities"]
    np.testing.assert_allclose(compiled.run(inputs)["probabilities"], expected, atol=1e-5)
    [job] = [job for job in client.jobs() if job.id not in before]  # for more, 16 do not suffice
    assert job.num_measured == 16


def test_a_submitted_model_is_read_by_both_clients(client: lw.Client) -> None:
    text = lower_model(network()).graph.script()
    model = client.tune_model(text, name="network", target=TARGET, max_trials=16)
    client.group(model.group_id).wait(timeout_secs=PATIENCE_SECS, progress=False)
    [tuned] = [task for task in model.tasks if task.job_id is not None]
    package = client.model_schedules(model.id)
    assert tuned.workload_key in {schedule.workload_key for schedule in package.schedules}

    async def read() -> int:
        async with lw.AsyncClient(client.url) as other:
            return len((await other.model_schedules(model.id)).schedules)

    assert asyncio.run(read()) == len(package.schedules)


def test_a_wrong_model_is_refused_with_its_line(client: lw.Client) -> None:
    with pytest.raises(lw.InvalidRequestError, match="rleu") as refused:
        client.tune_model(
            '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n'
            "    return R.nn.rleu(x)\n",
            name="wrong",
        )
    assert refused.value.code == "invalid-model"
    assert refused.value.problem is not None
    assert refused.value.problem.errors[0].line == 3
