"""Whole models over HTTP: submitted, tuned by made-up times, read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from fastapi.testclient import TestClient

from compiler.graph.text.parser import parse_graph
from compiler.package.lower_model import lower_model
from service.common.errors import UnprocessableError
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake.text_reader import MODEL_CHILD, TextReader
from service.store.database.database import Database
from tests.integration.service.driving import Interrupting, cost
from tests.integration.service.models.networks import network, skeleton
from tests.integration.service.statements import statements
from tests.service_fixtures import problem
from tuner.measurer.memory import MemoryMeasurer

TRIALS = 96
SIZES = [n for n in range(1, 721) if 720 % n == 0]


@pytest.fixture(scope="module")
def body() -> dict[str, Any]:
    return {
        "name": "network",
        "model": {"graph": skeleton(network())},
        "max_trials": TRIALS,
        "target": "cpu -num-cores=1",
        "warm_start": False,
        "strategy": "random",
    }


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.on_both_databases
def test_a_model_is_submitted_tuned_and_read(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    response = client.post("/models", json=body, headers={"Idempotency-Key": "k"})
    assert response.status_code == 201, response.text
    model = response.json()
    assert response.headers["location"] == f"/api/v1/models/{model['id']}"
    lowered = lower_model(network())
    assert [task["workload_key"] for task in model["tasks"]] == [t.key for t in lowered.tasks]
    assert [task["weight"] for task in model["tasks"]] == [t.weight for t in lowered.tasks]
    assert (model["state"], model["latency_secs"], model["history"]) == ("queued", None, [])
    assert [step["task"] for step in model["steps"][:2]] == [0, 0]
    assert [step["after"] for step in model["steps"][:3]] == [[], [0], [1]]

    coordinator = Coordinator(database, MemoryMeasurer(cost))
    assert coordinator.run_one()
    assert not coordinator.run_one()
    after = client.get(f"/models/{model['id']}").json()
    assert (after["state"], after["num_measured"]) == ("succeeded", TRIALS)
    secs = [task["weight"] * task["best_secs"] for task in after["tasks"] if task["job_id"]]
    assert after["latency_secs"] == pytest.approx(sum(secs))
    assert after["latency_secs"] < after["default_secs"]
    assert sum(task["share"] for task in after["tasks"]) == pytest.approx(1.0)
    assert all(task["next_gain"] > 0 for task in after["tasks"] if task["job_id"])
    latencies = [point["latency_secs"] for point in after["history"]]
    assert latencies == sorted(latencies, reverse=True)
    assert [point["at"] for point in after["history"]] == sorted(p["at"] for p in after["history"])

    package = client.get(f"/models/{model['id']}/package").json()
    assert {s["workload_key"] for s in package["schedules"]} == {t.key for t in lowered.tasks}
    [listed] = client.get("/models", params={"text": "netw"}).json()["items"]
    assert listed == {name: after[name] for name in listed}
    assert client.get("/models", params={"text": "other"}).json()["items"] == []

    repeated = client.post("/models", json=body, headers={"Idempotency-Key": "k"})
    assert repeated.headers["idempotent-replayed"] == "true"
    assert repeated.json() == after
    again = client.post("/models", json={**body, "name": "b"}, headers={"Idempotency-Key": "k"})
    assert "belongs to another request" in problem(again, 422)["detail"]


def test_a_model_that_is_interrupted_goes_on_as_if_it_had_not_been(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    first = client.post("/models", json=body).json()
    coordinator = Coordinator(database, Interrupting(40, lambda: coordinator.stop(0.0)))
    assert coordinator.run_one()
    amid = client.get(f"/models/{first['id']}").json()
    assert 0 < amid["num_measured"] < TRIALS
    Coordinator(database, MemoryMeasurer(cost)).run_one()
    after = client.get(f"/models/{first['id']}").json()
    assert (after["state"], after["num_measured"]) == ("succeeded", TRIALS)
    assert after["history"][: len(amid["history"])] == amid["history"]


def test_the_parameters_of_statements_do_not_grow_with_the_tasks(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    ops = "".join(
        f"        y{n} = R.nn.softmax(R.reshape(x, shape=({n}, {720 // n})))\n" for n in SIZES
    )
    names = ", ".join(f"y{n}" for n in SIZES)
    graph = (
        f'@R.function\ndef f(x: R.Tensor((720,), "float32")):\n    with R.dataflow():\n{ops}'
        f"        R.output({names})\n    return {names}\n"
    )
    client.post("/models", json={**body, "model": {"graph": graph}})
    [listed] = client.get("/models").json()["items"]
    assert listed["num_tasks"] == len(SIZES)
    with statements(database) as read:
        client.get("/models")
        client.get(f"/models/{listed['id']}")
    assert max(len(parameters) for _, parameters in read) < len(SIZES)


def test_few_trials_go_to_the_largest_tasks(client: TestClient, body: dict[str, Any]) -> None:
    model = client.post("/models", json={**body, "max_trials": 16}).json()
    assert [task["number"] for task in model["tasks"] if task["job_id"]] == [0]
    refused = problem(client.post("/models", json={**body, "max_trials": 15}), 422)
    assert refused["errors"][0]["pointer"] == "/max_trials"


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("@R.function\ndef f(", "never closed"),
        ("x = __import__('os').system('true')", "expected a function"),
        (
            '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n'
            '    with R.dataflow():\n        y: R.Tensor((4,), "float32") = R.nn.rleu(x)\n'
            "        R.output(y)\n    return y\n",
            "rleu",
        ),
        (
            '@R.function\ndef f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):\n'
            '    n = T.int64()\n    with R.dataflow():\n        y: R.Tensor((n,), "float32") ='
            " R.nn.relu(x)\n        R.output(y)\n    return y\n",
            "which is known only when it runs",
        ),
        (
            f'@R.function\ndef f(x: R.Tensor(({2**70},), "float32")):\n    with R.dataflow():\n'
            "        y = R.exp(x)\n        R.output(y)\n    return y\n",
            "expected 1 to 2147483647",
        ),
        (
            f'@R.function\ndef f(x: R.Tensor(({2**32}, {2**32}), "float32")):\n'
            "    with R.dataflow():\n        y = R.exp(x)\n        R.output(y)\n    return y\n",
            "expected 1 to 2147483647",
        ),
        (
            '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n'
            "    return x\n",
            None,
        ),
    ],
)
def test_a_wrong_graph_is_refused_with_its_reason(
    client: TestClient, body: dict[str, Any], graph: str, reason: str | None
) -> None:
    response = client.post("/models", json={**body, "model": {"graph": graph}})
    if reason is None:  # a copy is a program
        assert response.status_code == 201
        return
    refused = problem(response, 422)
    assert refused["type"] == "urn:loopwright:problem:invalid-model"
    assert refused["errors"][0]["pointer"] == "/model/graph"
    assert reason in refused["detail"]
    assert client.get("/models").json()["items"] == []


@pytest.mark.parametrize("file", [b"no model", b"\x08\x08\x3a\x02\x0a", b"\xff" * 1000])
def test_a_damaged_onnx_file_is_refused(
    client: TestClient, body: dict[str, Any], file: bytes
) -> None:
    pytest.importorskip("onnx")
    onnx = base64.b64encode(file).decode()
    refused = problem(client.post("/models", json={**body, "model": {"onnx": onnx}}), 422)
    assert refused["type"] == "urn:loopwright:problem:invalid-model"
    assert refused["errors"][0]["pointer"] == "/model/onnx"


def test_a_name_that_not_every_database_can_store_is_refused(
    client: TestClient, body: dict[str, Any]
) -> None:
    refused = problem(client.post("/models", json={**body, "name": "a\0b"}), 422)
    assert refused["errors"][0]["pointer"] == "/name"


def test_a_file_that_is_not_base64_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    refused = problem(client.post("/models", json={**body, "model": {"onnx": "*"}}), 422)
    assert "base64" in refused["detail"]


def test_the_text_of_a_graph_has_the_same_tasks_without_the_weights() -> None:
    text = skeleton(network())
    here, there = lower_model(network()), lower_model(parse_graph(text))
    assert [task.key for task in there.tasks] == [task.key for task in here.tasks]


def test_an_onnx_file_is_read(client: TestClient, body: dict[str, Any]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, kind, ["n", 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    file = base64.b64encode(helper.make_model(graph).SerializeToString()).decode()
    symbolic = problem(client.post("/models", json={**body, "model": {"onnx": file}}), 422)
    assert 'shapes={"x": (...)}' in symbolic["detail"]
    fixed = {"onnx": file, "shapes": {"x": [4, 8]}}
    [task] = client.post("/models", json={**body, "model": fixed}).json()["tasks"]
    assert task["operators"] == "relu"


def test_a_model_that_takes_too_long_is_refused_and_its_child_ends(body: dict[str, Any]) -> None:
    reader = TextReader(1, 4, 0, module=MODEL_CHILD, is_disposable=True)
    layers = "".join(f"        y{n} = R.exp(R.sin(y{n - 1}))\n" for n in range(1, 2000))
    text = (
        '@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n'
        f"    with R.dataflow():\n        y0 = R.exp(x)\n{layers}"
        "        R.output(y1999)\n    return y1999\n"
    )
    with closing(reader):
        with pytest.raises(UnprocessableError, match="too much processor time") as refused:
            reader.ask("one", "model", {"graph": text})
        assert refused.value.flaws[0].pointer == "/model"
    with closing(TextReader(1, 4, module=MODEL_CHILD, is_disposable=True)) as reader:
        assert len(reader.ask("one", "model", body["model"])["tasks"]) == 3
        assert reader._idle == []
