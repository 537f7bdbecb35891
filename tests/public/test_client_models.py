"""Whole models tuned on a real server, without their weights."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import loopwright as lw
from compiler.graph.reference import run_reference
from compiler.package.lower_model import lower_model
from service.wire.models import JobState
from tests.integration.service.models.networks import network
from tests.patience import PATIENCE_SECS
from tests.plan_runner import random_inputs_of

TARGET = "cpu -num-cores=1"


@pytest.mark.slow
def test_a_model_is_tuned_on_a_server_and_built_here(client: lw.Client) -> None:
    graph = network()
    compiled = client.compile(graph, TARGET, trials=48, progress=False)
    inputs = random_inputs_of(graph)
    expected = run_reference(graph, inputs)["probabilities"]
    np.testing.assert_allclose(compiled.run(inputs)["probabilities"], expected, atol=1e-5)
    tasks = lower_model(graph).tasks
    best = [client.best(task.func, target=TARGET) for task in tasks]
    assert all(found.run_secs > 0 for found in best)
    again = lw.compile(graph, TARGET, url=client.url, progress=False)  # what the server has
    np.testing.assert_allclose(again.run(inputs)["probabilities"], expected, atol=1e-5)


def test_a_handle_tells_the_latency_and_the_schedules(client: lw.Client) -> None:
    text = lower_model(network()).graph.script()
    handle = client.tune_model(text, name="network", target=TARGET, max_trials=16)
    model = handle.wait(timeout_secs=PATIENCE_SECS, progress=False)
    assert (model.state, model.num_measured) == (JobState.SUCCEEDED, 16)
    assert model.latency_secs is not None
    [tuned] = [task for task in model.tasks if task.job_id is not None]
    assert tuned.workload_key in {s.workload_key for s in handle.package().schedules}

    async def read() -> str:
        async with lw.AsyncClient(client.url) as other:
            handle = await other.tune_model(text, name="other", target=TARGET, max_trials=16)
            return (await handle.read()).name

    assert asyncio.run(read()) == "other"


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
