from __future__ import annotations

from typing import Any

import pytest

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.http.openapi_examples import EXAMPLES
from service.store.database.database import Database
from service.wire import (
    model_reads,
    models,
    problems,
    readings,
    remotes,
    requests,
    server_models,
)


def model(name: str) -> Any:
    places = (model_reads, models, problems, readings, remotes, requests, server_models)
    return next(getattr(place, name) for place in places if hasattr(place, name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_one(name: str) -> None:
    read = model(name).model_validate(EXAMPLES[name])
    said = read.model_dump(mode="json")
    assert set(EXAMPLES[name]) <= set(said)  # no field that the model does not know


def test_every_body_and_the_main_answers_have_one(database: Database) -> None:
    document = create_app(Dependencies(database)).openapi()
    schemas = document["components"]["schemas"]
    assert set(EXAMPLES) <= set(schemas)
    for operations in document["paths"].values():
        for operation in operations.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                assert schemas[body["schema"]["$ref"].rpartition("/")[2]]["examples"]
    for name in ("JobRead", "Page_JobRead_", "Page_BestSummary_", "Problem", "Curve"):
        assert schemas[name]["examples"]
