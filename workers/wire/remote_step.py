"""A step of a remote session: its request and its answer, as text that crosses any process."""

from __future__ import annotations

import base64
import binascii
from dataclasses import asdict, dataclass
from typing import Any, Literal

from workers.wire.answers import AnswerError

Act = Literal["open", "frame", "close"]
_ACTS = ("open", "frame", "close")


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """What a worker does for a session.

    Attributes:
        owner: Who may use the session: a step of another owner finds none.
        session: Its name; empty to open one.
        frame: The request of the client, in base64.
    """

    act: Act
    owner: str
    session: str = ""
    frame: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> RemoteStep:
        """Read what `to_json` wrote.

        Raises:
            TypeError: If a field is unknown, missing, or no text.
            ValueError: If the act is unknown.
        """
        step = cls(**obj)
        if not all(isinstance(value, str) for value in asdict(step).values()):
            raise TypeError("a step of a session consists of texts")
        if step.act not in _ACTS:
            raise ValueError(f"unknown act {step.act!r}")
        return step

    def frame_bytes(self) -> bytes:
        """Return the request of the client.

        Raises:
            ValueError: If it is not base64.
        """
        return base64.b64decode(self.frame, validate=True)


def encoded(frame: bytes) -> str:
    """Return a frame as text."""
    return base64.b64encode(frame).decode()


def read_answer(answer: object, key: str) -> str:
    """Return what a worker found: the name of a session, or a frame; it is not trusted.

    Raises:
        AnswerError: If it found something else, or nothing, and why.
    """
    match answer:
        case {"refused": str(reason)}:
            raise AnswerError(reason)
        case dict() if isinstance(answer.get(key), str):
            return str(answer[key])
        case _:
            raise AnswerError("a worker answered a session with something else")


def decoded(text: str) -> bytes:
    """Return the frame of a text.

    Raises:
        AnswerError: If it is not base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise AnswerError("a worker answered with no frame") from error
