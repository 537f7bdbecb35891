"""Types in the words of messages."""

import numpy as np
import pytest

from compiler.executor.named_type import named_type


@pytest.mark.parametrize(
    ("value", "words"),
    [(3, "an int"), ([], "a list"), (np.zeros(2), "a ndarray"), (None, "None"), (int, "a type")],
)
def test_article(value: object, words: str) -> None:
    assert named_type(value) == words
