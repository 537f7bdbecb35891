from __future__ import annotations

import pytest

import loopwright as lw


def test_example_inputs_of_an_onnx_model_are_refused() -> None:
    with pytest.raises(lw.ModelError, match=r"are a str: expected none.*pass a target by its name"):
        lw.compile("model.onnx", "cpu")
