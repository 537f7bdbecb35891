"""`torch.compile(..., backend="loopwright")`, compared with PyTorch without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import loopwright as lw

torch = pytest.importorskip("torch", reason="this host has no PyTorch")

from loopwright.torch import compiled_part  # noqa: E402
from loopwright.torch.backend import loopwright  # noqa: E402
from tests.torch_programs.modules import MODULES, RunningSum  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

Warnings = list[str]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Forget what other tests compiled."""
    torch.manual_seed(0)
    torch.compiler.reset()
    with torch.no_grad():
        yield


def _called(function: Callable[..., Any], *args: Any) -> tuple[Any, Warnings]:
    """Return the result of a call, and what Loopwright warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    return result, [str(w.message) for w in caught if w.category is lw.FallbackWarning]


def _assert_same(result: Any, expected: Any) -> None:
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    for left, right in zip(*map(torch.utils._pytree.tree_leaves, (result, expected)), strict=True):
        assert left.stride() == right.stride()


@pytest.mark.parametrize("name", ["InvertedResidual", "Decoder", "RotaryAttention"])
def test_a_module_is_compiled_whole(name: str) -> None:
    make, inputs = MODULES[name]
    module = make().eval()
    args = [make_input() for make_input in inputs]
    result, warned = _called(torch.compile(module, backend=loopwright), *args)
    _assert_same(result, module(*args))
    assert warned == []


def test_the_rest_runs_eagerly_and_a_warning_names_it() -> None:
    def function(x: Any) -> Any:
        y = torch.special.i0(torch.relu(x) @ x)
        return torch.special.i0(y).softmax(-1) + y, y.t()

    x = torch.randn(4, 4)
    result, warned = _called(torch.compile(function, backend=loopwright), x)
    _assert_same(result, function(x))
    [message] = warned
    assert "PyTorch runs 2: i0.default (2 times): the operator is not supported" in message


def test_a_fused_operator_of_pytorch_has_advice() -> None:
    make, [make_input] = MODULES["Encoder"]
    module, tokens = make().eval(), make_input()
    result, warned = _called(torch.compile(module, backend=loopwright), tokens)
    _assert_same(result, module(tokens))
    [message] = warned
    assert "_transformer_encoder_layer_fwd.default" in message
    assert "set_fastpath_enabled(False)" in message


def test_parameters_that_change_are_seen() -> None:
    module = torch.nn.Linear(4, 4).eval()
    compiled, x = torch.compile(module, backend=loopwright), torch.randn(2, 4)
    _assert_same(compiled(x), module(x))
    for _ in range(2):
        module.weight.mul_(2)
        _assert_same(compiled(x), module(x))
    module.load_state_dict({"weight": torch.eye(4), "bias": torch.ones(4)})
    _assert_same(compiled(x), x + 1)


def test_inputs_and_buffers_are_changed_as_eagerly() -> None:
    module, same = RunningSum(), RunningSum()
    compiled = torch.compile(module, backend=loopwright)
    x = torch.randn(3, 4)
    y = x.clone()
    for _ in range(3):
        _assert_same(compiled(x), same(y))
        _assert_same((x, module.total), (y, same.total))


def test_gradients_are_left_to_pytorch_and_a_warning_says_so() -> None:
    module, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with torch.enable_grad():
        result, warned = _called(torch.compile(module, backend=loopwright), x)
        result.sum().backward()
    assert module.weight.grad is not None
    [message] = warned
    assert "computes no gradients: call the module under torch.no_grad()" in message


def test_each_shape_is_compiled_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_part, "MAX_SHAPES", 2)
    module = torch.nn.Linear(4, 4).eval()
    compiled = torch.compile(module, backend=loopwright, dynamic=True)
    heard = []
    for count in (2, 3, 5, 3):
        x = torch.randn(count, 4)
        result, warned = _called(compiled, x)
        _assert_same(result, module(x))
        heard += warned
    [message] = heard
    assert "inputs of more than 2 shapes; PyTorch runs it" in message


def test_a_part_without_code_runs_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise lw.ModelError("no code", operator="relu.default", node="relu")

    monkeypatch.setattr(compiled_part, "compile", refuse)
    x = torch.randn(4)
    result, warned = _called(torch.compile(torch.relu, backend=loopwright), x)
    _assert_same(result, torch.relu(x))
    assert warned == [
        "a part of the graph can't be compiled: relu.default 'relu': no code; PyTorch runs it"
    ]


def test_pytorch_finds_the_back_end_by_its_name() -> None:
    assert "loopwright" in torch.compiler.list_backends()
