"""Modules of PyTorch as models, compared with what PyTorch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from tests.targets import here

torch = pytest.importorskip("torch", reason="this host has no PyTorch")

from tests.torch_programs.cases import CASES  # noqa: E402
from tests.torch_programs.modules import (  # noqa: E402
    MODULES,
    Branch,
    Counter,
    Unsupported,
)


def _results(model: Any, inputs: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        return list(torch.utils._pytree.tree_leaves(model(*inputs)))


@pytest.mark.parametrize("name", MODULES)
def test_a_compiled_module_computes_what_pytorch_computes(name: str) -> None:
    module, inputs = CASES[name].module(name)
    executable = lw.compile(module, inputs, target=here())
    results = executable.executor.run([x.numpy() for x in inputs]).values()
    for result, expected in zip(results, _results(module, inputs), strict=True):
        np.testing.assert_allclose(result, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_results_have_the_names_of_what_the_module_returns() -> None:
    module, inputs = CASES["Recurrent"].module("Recurrent")
    executable = lw.compile(module, {"x": inputs[0]}, target=here())
    assert [array.name for array in executable.executor.inputs] == ["x"]
    names = [array.name for array in executable.executor.outputs]
    assert names == ["states_0", "states_1", "lstm_0", "lstm_1", "gru"]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (torch.nn.Linear(4, 2), r"Linear is in training mode; call module.eval\(\)"),
        (Counter().eval(), r"changes calls \(buffer_mutation\).*return the new value"),
        (Branch().eval(), r"can't export the module Branch.*torch.compile"),
        (Unsupported().eval(), "i0.default '.*i0': the operator is not supported"),
        (torch.nn.Linear(4, 2).to("meta").eval(), "is on meta: expected a tensor of the CPU"),
    ],
)
def test_a_module_that_has_no_graph_is_refused(module: Any, reason: str) -> None:
    with pytest.raises(lw.ModelError, match=reason):
        lw.compile(module, (torch.ones(3, 4),))


@pytest.mark.parametrize("example_inputs", [None, torch.ones(3, 4), "cpu"])
def test_example_inputs_are_the_arguments_of_a_call(example_inputs: Any) -> None:
    with pytest.raises(lw.ModelError, match=r"pass a tuple of tensors: lw.compile\(module, \(x,\)"):
        lw.compile(torch.nn.ReLU().eval(), example_inputs)


def test_arguments_of_another_kind_of_model_are_refused() -> None:
    with pytest.raises(lw.ModelError, match="shapes and fixed_inputs belong to ONNX models"):
        lw.compile(torch.nn.ReLU().eval(), (torch.ones(3),), shapes={"x": (3,)})
