"""PyTorch, eager: the speed of oneDNN, MKL and its own kernels on plain arguments.

Weights are not packed before the calls. An image with channels last keeps its layout, and its
weights get the layout that PyTorch uses in this case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from compiler.ops.spec import parse_spec
from workers.libraries.kernel_sets import LibraryCode
from workers.libraries.library import Array, LibraryCall, LibraryError

Options: TypeAlias = SimpleNamespace
Function: TypeAlias = Callable[..., Any]

_ACTIVATIONS: dict[str | None, Function] = {
    None: lambda x: x,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01, inplace=True),
    "relu": torch.relu_,
    "sigmoid": torch.sigmoid_,
    "silu": lambda x: F.silu(x, inplace=True),
    "tanh": torch.tanh_,
}
_UNARY = "abs ceil cos erf exp floor log negative relu round rsqrt sigmoid sin sqrt tan tanh trunc"
_BINARY = ("add", "divide", "maximum", "minimum", "multiply", "subtract")
_CONVOLUTIONS = {"conv1d": F.conv1d, "conv2d": F.conv2d, "conv3d": F.conv3d}
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def start(num_threads: int) -> str:
    """Set its number of threads; return its version."""
    torch.set_num_threads(num_threads)
    torch.set_grad_enabled(False)
    backends = {"oneDNN": torch.backends.mkldnn, "MKL": torch.backends.mkl}
    used = [name for name, backend in backends.items() if backend.is_available()]
    return ", ".join([f"PyTorch {torch.__version__}", *used])


def kernel_set() -> LibraryCode:
    """Return the instructions that its own kernels use; oneDNN and MKL choose theirs by call."""
    return LibraryCode(str(torch.backends.cpu.get_cpu_capability()))


def prepare(operator: str, inputs: Sequence[Array]) -> LibraryCall:
    """Return the call of an operator.

    Raises:
        LibraryError: If there is no function for it.
    """
    call = prepare_tensors(operator, [torch.from_numpy(array) for array in inputs])
    copies = [tensor.numpy() for tensor in call.copies]
    return LibraryCall(call.run, lambda output: call.result(output).numpy(), copies=copies)


def prepare_tensors(operator: str, tensors: Sequence[Any]) -> LibraryCall:
    """Return the call of an operator on tensors of any device; its result is a tensor.

    Raises:
        LibraryError: If there is no function for it.
    """
    spec = parse_spec(operator)
    bound = Options(**spec.bound())
    if spec.name in _CONVOLUTIONS or spec.name == "depthwise_conv2d":
        return _convolution(spec.name, bound, tensors)
    if spec.name in {"max_pool2d", "avg_pool2d"}:
        return _pool(spec.name, bound, tensors[0])
    function = _FUNCTIONS.get(spec.name)
    if function is None:
        raise LibraryError(f"PyTorch has no {spec.name}, or it was not found")
    return LibraryCall(lambda: function(bound, *tensors), lambda output: output)


def _matmul(p: Options, a: Any, b: Any, *bias: Any) -> Any:
    lhs = a.transpose(-1, -2) if p.transpose_a else a
    rhs = b.transpose(-1, -2) if p.transpose_b else b
    if bias:
        total = torch.addmm(*bias, lhs, rhs) if a.ndim == 2 else (lhs @ rhs).add_(*bias)
    else:
        total = lhs @ rhs
    return _ACTIVATIONS[p.activation](total)


def _grouped_attention(p: Options, q: Any, k: Any, v: Any, *mask: Any) -> Any:
    bias = mask[0] if mask else None
    if p.causal and p.past < p.n - 1:
        seen = torch.ones(p.m, p.n, dtype=torch.bool).tril(p.past)
        bias = seen if bias is None else bias.masked_fill(~seen, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, bias, scale=p.scale, enable_gqa=True)


def _convolution(name: str, p: Options, tensors: Sequence[Any]) -> LibraryCall:
    image, weights, *bias = tensors
    is_first = p.layout.startswith("NC")
    if not is_first:
        weights = torch.movedim(weights, (-2, -1), (1, 0) if name != "depthwise_conv2d" else (0, 1))
    groups = 1
    if name == "depthwise_conv2d":
        groups, multiplier, *kernel = weights.shape
        weights = weights.reshape(groups * multiplier, 1, *kernel)
    else:
        groups = p.groups
    if not is_first:
        image = torch.movedim(image, -1, 1)
        if image.ndim in _CHANNELS_LAST:
            weights = weights.contiguous(memory_format=_CHANNELS_LAST[image.ndim])
        else:
            weights = weights.contiguous()
    function = _CONVOLUTIONS[f"conv{image.ndim - 2}d"]
    more = (bias[0] if bias else None, p.stride, _padding(p, image.ndim - 2), p.dilation, groups)
    activation = _ACTIVATIONS[p.activation]
    return LibraryCall(
        lambda: activation(function(image, weights, *more)),
        _reader(is_first=is_first),
        copies=() if is_first else (weights,),
    )


def _pool(name: str, p: Options, image: Any) -> LibraryCall:
    is_first = p.layout == "NCHW"
    if not is_first:
        image = torch.movedim(image, -1, 1)
    args = (p.kernel, p.stride, _padding(p, 2))
    if name == "max_pool2d":
        more: tuple[Any, ...] = (p.dilation, p.ceil_mode)
        return LibraryCall(lambda: F.max_pool2d(image, *args, *more), _reader(is_first=is_first))
    more = (p.ceil_mode, p.count_include_pad)
    return LibraryCall(lambda: F.avg_pool2d(image, *args, *more), _reader(is_first=is_first))


def _reader(*, is_first: bool) -> Callable[[Any], Any]:
    """Return what makes an image of a result, in the layout of the workload."""
    return lambda output: output if is_first else torch.movedim(output, 1, -1)


def _padding(p: Options, ndim: int) -> Any:
    """Return the padding, the same on both sides of each dimension.

    Raises:
        LibraryError: If it is not the same.
    """
    if isinstance(p.padding, int) or len(p.padding) == ndim:
        return p.padding
    before, after = tuple(p.padding[:ndim]), tuple(p.padding[ndim:])
    if before != after:
        raise LibraryError(f"PyTorch pads both sides alike, not by {before} and {after}")
    return before


def _inner(p: Options, x: Any) -> Any:
    return x.shape[p.axis % x.ndim :]


def _reduction(function: Function) -> Function:
    def reduced(p: Options, x: Any) -> Any:
        axis = tuple(range(x.ndim)) if p.axis is None else p.axis
        return function(x, dim=axis, keepdim=p.keepdims)

    return reduced


def _each(name: str) -> Function:
    function = getattr(torch, name)
    return lambda _, *tensors: function(*tensors)


_FUNCTIONS: dict[str, Function] = {
    **{name: _each(name) for name in (*_UNARY.split(), *_BINARY)},
    "attention": lambda p, q, k, v: F.scaled_dot_product_attention(
        q, k, v, is_causal=p.causal, scale=p.scale
    ),
    "clip": lambda p, x: torch.clamp(x, p.a_min, p.a_max),
    "gelu": lambda p, x: F.gelu(x, approximate=p.approximate),
    "group_norm": lambda p, x, gamma, beta: _ACTIVATIONS[p.activation](
        F.group_norm(x, p.groups, gamma, beta, p.epsilon)
    ),
    "grouped_query_attention": _grouped_attention,
    "layer_norm": lambda p, x, gamma, beta, *residual: F.layer_norm(
        sum(residual, x), _inner(p, x), gamma, beta, p.epsilon
    ),
    "leaky_relu": lambda p, x: F.leaky_relu(x, p.negative_slope),
    "log_softmax": lambda p, x: torch.log_softmax(x, p.axis),
    "matmul": _matmul,
    "max": _reduction(torch.amax),
    "mean": _reduction(torch.mean),
    "min": _reduction(torch.amin),
    "power": _each("pow"),
    "rms_norm": lambda p, x, weight, *residual: F.rms_norm(
        sum(residual, x), _inner(p, x), weight, p.epsilon
    ),
    "silu": lambda _, x: F.silu(x),
    "softmax": lambda p, x: torch.softmax(x, p.axis),
    "sum": _reduction(torch.sum),
    "transpose": lambda p, x: x.permute(p.axes or tuple(reversed(range(x.ndim)))).contiguous(),
}
