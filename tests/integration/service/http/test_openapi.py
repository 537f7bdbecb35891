"""The OpenAPI document against the service: thousands of requests, correct and wrong ones.

No answer is an error of the server's, and none has a status, a type or a body that is not in the
document. The service is whole but for its coordinator, and its database has jobs that were tuned,
a worker and tokens. The requests are the same each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake import model_text
from service.intake.text_reader import MODEL_CHILD, TextReader
from service.models.submit import submit_model
from service.store import tokens, workers
from service.store.database.database import Database
from service.wire.requests import ModelCreate, ModelSource
from service.wire.server_models import Scope
from tests.integration.service.models.networks import network, skeleton
from tests.integration.service.tuned import SPEC, tuned
from workers.engine.engine import WorkerFacts

MIN_CASES = 2_500
RANDOM_CASES = 4
"""So many for each operation and mode, besides those at the edges."""
EXPENSIVE = {
    "POST /api/v1/artifacts",
    "POST /api/v1/models",
    "GET /api/v1/jobs/{job_id}/trials/{number}/code",
}
"""These have the compiler run in a process of its own: a few of them are enough."""
FEW = 6
NOT_JSON = {"POST /api/v1/import"}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
TOKEN = "s3cret"

schemathesis.serializer.alias("application/x-ndjson", "text/plain")


class Prober:
    """Sends cases to a service, and keeps what is wrong with its answers."""

    def __init__(self, database: Database, known: Mapping[str, Any]) -> None:
        app = create_app(
            Dependencies(database, is_stopping=lambda: True), token=TOKEN, requests_per_sec=0
        )
        self.document = app.openapi()
        self.statuses = Counter[int]()
        self.failures: dict[tuple[str, int], str] = {}
        self._known = known
        self._client = TestClient(app, raise_server_exceptions=False)
        self._client.__enter__()  # one event loop for all requests
        load_all_checks()
        self._checks: Any = CHECKS.get_by_names(CHECKED)

    def close(self) -> None:
        self._client.__exit__()

    def aim(self, case: Case[Any]) -> bool:
        """Have a case ask for what is there; tell whether it has a place for that."""
        is_aimed = False
        for part in (case.path_parameters, case.body):
            if isinstance(part, dict):
                found = {name: self._known[name] for name in part if name in self._known}
                is_aimed |= bool(found)
                part.update(found)
        return is_aimed

    def send(self, case: Case[Any]) -> None:
        """Send a case, and look at the answer."""
        sent = case.as_transport_kwargs(base_url="http://testserver")
        body = {name: sent[name] for name in ("json", "data") if sent.get(name) is not None}
        if isinstance(body.get("data"), bytes | str):
            body["content"] = body.pop("data")
        response = self._client.request(
            sent["method"],
            sent["url"],
            params=sent.get("params"),
            headers={**(sent.get("headers") or {}), "Authorization": f"Bearer {TOKEN}"},
            **body,
        )
        self.statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=self._checks)
        except FailureGroup as group:
            where = (case.operation.label, response.status_code)
            self.failures.setdefault(where, "\n".join(map(str, group.exceptions)))


@pytest.fixture
def models_in_one_child(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Read all models in one child: the service starts one for each, which takes a second."""
    with closing(TextReader(1, 4, module=MODEL_CHILD)) as reader:
        monkeypatch.setattr(model_text, "shared_model_reader", lambda: reader)
        yield


@pytest.fixture
def prober(database: Database, models_in_one_child: None) -> Iterator[Prober]:
    job_id, _ = tuned(database, SPEC)
    tuned(database, "matmul:96,96,128")
    source = ModelSource(graph=skeleton(network()))
    model = ModelCreate(name="network", model=source, max_trials=16)
    model_id = submit_model(database, model)[0].id
    with database.write() as session:
        row, _ = tokens.create(session, "ci", [Scope.SUBMIT])
        workers.record_facts(
            session, [WorkerFacts("w", "here", "cpu/znver3", 1, False, 1.7e9, {"cpu": "zen"})]
        )
    known = {
        "job_id": str(job_id),
        "model_id": str(model_id),
        "model": {"graph": source.graph},
        "number": 1,
        "token_id": str(row.id),
        "workload": {"operator": SPEC},
        "target": "cpu -num-cores=1",
    }
    with closing(Prober(database, known)) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_answer_is_against_the_document(prober: Prober) -> None:
    schema = schemathesis.openapi.from_dict(prober.document)
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        few = FEW if operation.label in EXPENSIVE else None
        # The edges of what each parameter may be, and what is just beyond.
        for is_aimed in (False, True):
            cases = schema.iter_coverage_cases(
                operation, generation_modes=MODES, generation_config=schema.config.generation
            )
            for number, case in enumerate(cases):
                if is_aimed and (not prober.aim(case) or number == few):
                    break
                prober.send(case)
        takes_anything = operation.definition.raw.keys() & {"parameters", "requestBody"}
        if takes_anything and operation.label not in NOT_JSON:
            for mode in MODES:
                strategy = operation.as_strategy(generation_mode=mode)
                send_random(prober, strategy, few or RANDOM_CASES)
    assert not prober.failures, "\n\n".join(f"{k}: {v}" for k, v in prober.failures.items())
    assert sum(prober.statuses.values()) >= MIN_CASES, prober.statuses
    assert {200, 201, 204, 404, 409, 422} <= set(prober.statuses)


def test_an_answer_that_is_not_in_the_document_is_found(prober: Prober) -> None:
    answers = prober.document["paths"]["/api/v1/jobs"]["get"]["responses"]
    del answers["422"]
    answers["200"]["content"]["application/json"]["schema"] = {"type": "string"}
    schema = schemathesis.openapi.from_dict(prober.document)
    operation = schema["/api/v1/jobs"]["GET"]
    prober.send(operation.Case(query={"limit": "0"}))
    prober.send(operation.Case())
    assert set(prober.failures) == {("GET /api/v1/jobs", 422), ("GET /api/v1/jobs", 200)}


def send_random(prober: Prober, strategy: st.SearchStrategy[Case[Any]], num_cases: int) -> None:
    """Send cases that are drawn by lot, the same ones each time."""

    @settings(
        max_examples=num_cases,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def send(case: Case[Any]) -> None:
        prober.aim(case)
        prober.send(case)

    send()
