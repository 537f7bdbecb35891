"""Parse the answers of a server."""

from __future__ import annotations

from typing import TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from loopwright.errors import ProtocolError
from service.wire.models import Event

ModelT = TypeVar("ModelT", bound=BaseModel)


def read(model: type[ModelT], response: httpx2.Response) -> ModelT:
    """Parse a response body as a model.

    Raises:
        ProtocolError: If it does not match the model.
    """
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        problem = error.errors()[0]
        location = ".".join(str(key) for key in problem["loc"]) or "the body"
        raise ProtocolError(
            f"{response.request.url} answered without a valid {model.__name__}:"
            f" {location}: {problem['msg']}"
        ) from error


def read_event(sent: httpx2.ServerSentEvent) -> Event:
    """Parse an event of a stream.

    Raises:
        ProtocolError: If it is not valid.
    """
    try:
        return Event.model_validate_json(sent.data)
    except ValidationError as error:
        raise ProtocolError(f"invalid event in the stream: {sent.data[:200]}") from error
