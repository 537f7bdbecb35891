"""The OpenAPI document: FastAPI's own, with every error described as a problem document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from service.http.openapi_examples import add_examples
from service.http.problems import responses
from service.wire.problems import Problem

_WHERE = "#/components/schemas/{model}"
_OF_FASTAPI = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Make `app` describe its problem documents."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        schemas = document["components"]["schemas"]
        if "Problem" not in schemas:
            problem = Problem.model_json_schema(ref_template=_WHERE, mode="serialization")
            schemas.update(problem.pop("$defs"))
            schemas["Problem"] = problem
            _correct(document["paths"])
            for name in _OF_FASTAPI:
                schemas.pop(name, None)
            add_examples(schemas)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _correct(paths: dict[str, Any]) -> None:
    for operations in paths.values():
        for operation in operations.values():
            answers = operation["responses"]
            # An address may contain zero characters; a body may be too large, or of another type.
            statuses = [400, *([413, 415] if "requestBody" in operation else [])]
            statuses += [422] if "422" in answers else []
            answers |= {str(status): text for status, text in responses(*statuses).items()}
