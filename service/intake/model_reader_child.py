"""The child process that reads one model of a user; it loads what lowers models."""

from __future__ import annotations

from service.intake.model_text import read_model_here
from service.intake.text_reader_child import answer_requests
from service.wire.requests import ModelSource

if __name__ == "__main__":
    answer_requests(
        {"model": lambda **fields: read_model_here(ModelSource(**fields)).model_dump(mode="json")}
    )
