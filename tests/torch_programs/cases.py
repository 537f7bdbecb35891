"""Small programs that together use each conversion of ATen operators."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

import tests.torch_programs.map_cases  # noqa: F401  adds its programs
from tests.torch_programs.case import (
    CASES,
    case,
    floats,
    image,
    integers,
    numbers,
    positive,
    truths,
    x,
    y,
)
from tests.torch_programs.modules import MODULES

__all__ = ["CASES"]

aten = torch.ops.aten

case("mm", lambda a, b: (torch.mm(a, b), aten.t(b), a @ b), floats(3, 4), floats(4, 5))
case("bmm", torch.bmm, floats(2, 3, 4), floats(2, 4, 5))
case("matmul", lambda a, b, v: (a @ b, a @ v, v @ a.transpose(-1, -2)), x, floats(4, 5), floats(4))
case("mv and dot", lambda a, v: (torch.mv(a, v), torch.dot(v, v)), floats(3, 4), floats(4))
case("linear", lambda a, w, b: (F.linear(a, w, b), F.linear(a, w)), x, floats(5, 4), floats(5))
case(
    "addmm",
    lambda c, a, b: (
        torch.addmm(c, a, b),
        torch.addmm(c, a, b, beta=0.5, alpha=2),
        torch.addmm(c, a, b, beta=0),
    ),
    floats(5),
    floats(3, 4),
    floats(4, 5),
)
case(
    "baddbmm",
    lambda c, a, b: torch.baddbmm(c, a, b, alpha=0.5),
    floats(3, 5),
    floats(2, 3, 4),
    floats(2, 4, 5),
)
case("einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), x, y)
case("integer matmul", lambda a, b: a @ b, numbers, integers(-9, 9, 4, 2))

case("conv1d", lambda a, w, b: F.conv1d(a, w, b, 2, 1), floats(2, 4, 9), floats(6, 4, 3), floats(6))
case(
    "conv2d",
    lambda a, w: F.conv2d(a, w, None, (2, 1), (1, 2), (1, 2), 2),
    image,
    floats(6, 2, 3, 3),
)
case("conv2d same", lambda a, w: F.conv2d(a, w, padding="same"), image, floats(6, 4, 3, 3))
case(
    "conv2d of one image",
    F.conv2d,
    floats(4, 6, 6),
    floats(6, 4, 3, 3),
    floats(6),
)
case("conv3d", lambda a, w: F.conv3d(a, w, stride=2), floats(1, 2, 5, 5, 5), floats(3, 2, 3, 3, 3))
case(
    "conv_transpose",
    lambda a, w: F.conv_transpose2d(a, w, None, 2, 1, 1, 2),
    image,
    floats(4, 3, 3, 3),
)
case(
    "conv_transpose1d",
    lambda a, w, b: F.conv_transpose1d(a, w, b, 2, dilation=2),
    floats(2, 4, 5),
    floats(4, 3, 3),
    floats(3),
)

case(
    "max_pool2d",
    lambda a: (
        F.max_pool2d(a, 3, 2, 1),
        F.max_pool2d(a, 2, ceil_mode=True),
        F.max_pool2d(a, (2, 3), 1, dilation=2),
    ),
    image,
)
case("max_pool1d", lambda a: F.max_pool1d(a, 2), floats(2, 4, 9))
case("max_pool3d", lambda a: F.max_pool3d(a, 2), floats(1, 2, 4, 4, 4))
case("max_pool of one image", lambda a: F.max_pool2d(a, 2), floats(4, 6, 6))
case("max_pool with positions", lambda a: F.max_pool2d(a, 2, return_indices=True), image)
case(
    "avg_pool",
    lambda a: (
        F.avg_pool2d(a, 3, 2, 1),
        F.avg_pool2d(a, 3, 2, 1, count_include_pad=False),
        F.avg_pool2d(a, 3, 2, 1, True),
    ),
    image,
)
case("avg_pool1d", lambda a: F.avg_pool1d(a, 3, 2, 1), floats(2, 4, 9))
case("avg_pool3d", lambda a: F.avg_pool3d(a, 2), floats(1, 2, 4, 4, 4))
case(
    "adaptive_avg_pool2d",
    lambda a: (F.adaptive_avg_pool2d(a, (3, 2)), F.adaptive_avg_pool2d(a, 1)),
    image,
)
case("adaptive_avg_pool1d", lambda a: F.adaptive_avg_pool1d(a, 3), floats(2, 4, 9))
case("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, (2, 1, 3)), floats(1, 2, 4, 2, 6))
case("adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, (3, 2)), image)
case(
    "adaptive pools with windows of several sizes",
    lambda a, b, c: (
        F.adaptive_avg_pool1d(a, 4),
        F.adaptive_avg_pool2d(b, (4, 5)),
        F.adaptive_avg_pool3d(c, (3, 2, 7)),
        F.adaptive_max_pool1d(a, 4),
        F.adaptive_max_pool2d(b, (4, 8)),
        F.adaptive_max_pool3d(c, (3, 1, 4)),
    ),
    floats(2, 4, 9),
    floats(2, 3, 7, 6),
    floats(1, 2, 5, 3, 4),
)
case(
    "grid_sample",
    lambda a, b, c, d: (
        F.grid_sample(a, b, "bilinear", "zeros", align_corners=False),
        F.grid_sample(a, b, "nearest", "reflection", align_corners=False),
        F.grid_sample(a, b, "bicubic", "border", align_corners=True),
        F.grid_sample(c, d, "bilinear", "border", align_corners=False),
    ),
    floats(2, 3, 5, 6),
    floats(2, 4, 3, 2),
    floats(1, 2, 3, 4, 5),
    floats(1, 2, 3, 2, 3),
)
case(
    "nearest",
    lambda a: (
        F.interpolate(a, scale_factor=2),
        F.interpolate(a, (9, 8)),
        F.interpolate(a, scale_factor=0.6),
    ),
    image,
)
case(
    "nearest1d and 3d",
    lambda a, b: (F.interpolate(a, 7), F.interpolate(b, scale_factor=2)),
    floats(1, 2, 5),
    floats(1, 2, 2, 3, 2),
)
case(
    "bilinear",
    lambda a: (
        F.interpolate(a, scale_factor=2, mode="bilinear"),
        F.interpolate(a, (4, 9), mode="bilinear", align_corners=True),
    ),
    image,
)
case(
    "linear interpolation",
    lambda a: F.interpolate(a, scale_factor=1.5, mode="linear"),
    floats(1, 2, 5),
)

case(
    "batch_norm",
    lambda a, w, b, m, v: F.batch_norm(a, m, v, w, b),
    image,
    floats(4),
    floats(4),
    floats(4),
    positive(4),
)
case("batch_norm without scale", F.batch_norm, image, floats(4), positive(4))
case(
    "layer_norm",
    lambda a, w: (F.layer_norm(a, (4,)), F.layer_norm(a, (3, 4), w, w, 1e-3)),
    x,
    floats(3, 4),
)
case("native_layer_norm", lambda a: aten.native_layer_norm(a, [4], None, None, 1e-5)[0], x)
case("rms_norm", lambda a, w: (F.rms_norm(a, (4,), w), F.rms_norm(a, (4,), eps=1e-3)), x, floats(4))
case("fused_rms_norm", lambda a, w: aten._fused_rms_norm(a, [4], w, 1e-5)[0], x, floats(4))
case("group_norm", lambda a, w: (F.group_norm(a, 2, w, w), F.group_norm(a, 4)), image, floats(4))
case("group_norm of rows", lambda a: F.group_norm(a, 2), floats(3, 8))
case(
    "native_group_norm",
    lambda a: aten.native_group_norm(a, None, None, 2, 4, 48, 2, 1e-5)[0],
    image,
)
case("instance_norm", F.instance_norm, image)
case("local_response_norm", lambda a: F.local_response_norm(a, 3), image)
case("normalize", lambda a: F.normalize(a, dim=-1), x)
case(
    "softmax",
    lambda a: (
        F.softmax(a, -1),
        F.log_softmax(a, 1),
        F.softmax(a, 0, torch.float64),
        F.softmin(a, 1),
    ),
    x,
)
case("softmax of rank 0", lambda a: (a.softmax(0), a.log_softmax(0)), lambda: torch.tensor(2.0))
case("_safe_softmax", lambda a: aten._safe_softmax(a.masked_fill(a < 0.8, -float("inf")), -1), x)
for _name in ("add", "sub", "mul", "div"):
    _scalar = getattr(aten, _name).Scalar
    case(f"{_name}.Scalar", lambda a, f=_scalar: f(a, 2.5), x)
case("_softmax", lambda a: (aten._softmax(a, 1, False), aten._log_softmax(a, 1, False)), x)

_heads = floats(2, 4, 3, 8)
case("attention", F.scaled_dot_product_attention, _heads, _heads, _heads)
case(
    "causal attention",
    lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True, scale=0.3),
    _heads,
    _heads,
)
case("attention with a mask", F.scaled_dot_product_attention, _heads, _heads, _heads, floats(3, 3))
case(
    "attention with closed rows",
    F.scaled_dot_product_attention,
    _heads,
    _heads,
    _heads,
    lambda: torch.tensor([[True, False, True], [False] * 3, [True] * 3]),
)
case(
    "grouped-query attention",
    lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
    _heads,
    floats(2, 2, 3, 8),
)
case(
    "flash attention",
    lambda q, k: aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, True)[0],
    _heads,
    _heads,
)

case("sum", lambda a: (a.sum(), a.sum(1), a.sum((0, -1), keepdim=True), a.sum([])), x)
case(
    "sum of types",
    lambda a, b: (a.sum(), b.sum(), a.sum(1, dtype=torch.float32)),
    numbers,
    truths(4),
)
case("mean", lambda a: (a.mean(), a.mean(1), a.mean((0, -1), keepdim=True)), x)
case("prod", lambda a: (a.prod(), a.prod(1), a.prod(-1, keepdim=True)), x)
case("extremes", lambda a: (a.max(), a.min(), a.amax(1), a.amin((0, 2), keepdim=True)), x)
case("extremes of bools", lambda a: (a.amax(0), a.amin(0), a.max()), truths(3, 4))
case("extremes and positions", lambda a: (*a.max(1), *a.min(-1, keepdim=True), a.max(0).values), x)
case("positions", lambda a: (a.argmax(), a.argmin(1), a.argmax(-1, keepdim=True)), x)
case(
    "any and all",
    lambda a: (a.any(), a.all(), a.any(1), a.all(-1, keepdim=True), a.any((0, 1)), a.all((0, 1))),
    truths(2, 3, 4),
)
case("any of numbers", lambda a: (a.any(), a.all(1)), numbers)
case(
    "variance",
    lambda a: (
        a.var(),
        a.var(1),
        a.std(-1, keepdim=True),
        a.var(1, correction=0),
        *torch.var_mean(a, 1),
    ),
    x,
)
case("cumulative", lambda a, n: (a.cumsum(1), a.cumprod(-1), n.cumsum(0)), x, numbers)
case("logsumexp", lambda a: (a.logsumexp(1), a.logsumexp((0, 2), keepdim=True)), x)
case("norm", lambda a: (a.norm(), a.norm(1, 1), a.norm(float("inf"), -1, True)), x)
case("reductions of rank 0", lambda a: (a.sum(), a.mean(), a.max()), lambda: torch.tensor(2.0))

case("views", lambda a: (a.view(6, 4), a.reshape(-1), a.flatten(1), a.unsqueeze(1), a[:, None]), x)
case(
    "plain views",
    lambda a: aten._unsafe_view(a, [8, 3]),
    x,
)
case(
    "squeeze",
    lambda a: (a.squeeze(), a.squeeze(0), a.squeeze((0, 2)), aten.squeeze.dim(a, 2)),
    floats(1, 3, 1, 2),
)
case(
    "permutations",
    lambda a: (a.permute(2, 0, 1), a.transpose(0, -1), a.mT, aten.permute(a, [0, -1, 1])),
    x,
)
case("plain transpositions", lambda a: (aten.transpose(a, 0, -1), aten.t(a[0]), aten.t(a[0, 0])), x)
case(
    "expand", lambda a: (a.expand(3, 4), a.expand(2, -1, 4), a.broadcast_to(2, 3, 4)), floats(3, 1)
)
case("slices", lambda a: (a[1:], a[:, :2], a[..., ::2], a[:, 1:-1], a[:, -2:], a[:, 5:]), x)
case("select", lambda a: (a[0], a[:, -1], a.select(-1, 2)), x)
case(
    "cat",
    lambda a, b: (torch.cat([a, b], 1), torch.cat([a, b.int()], -1), torch.cat([a[:, :0], b], 1)),
    x,
    y,
)
case("cat of an empty vector", lambda a: torch.cat([torch.zeros(0), a], 1), x)
case("stack", lambda a, b: (torch.stack([a, b], -1), aten.stack([a, b], 1)), x, y)
case(
    "split",
    lambda a: (
        *a.split(2, -1),
        *a.split([1, 2], 1),
        *a.split([0, 3], 1),
        *a.chunk(2, -1),
        *a.unbind(1),
    ),
    x,
)
case("plain split", lambda a: (*aten.split(a, 3, -1), *aten.split(a, 4, -1), *aten.unbind(a, 1)), x)
case(
    "flip and roll", lambda a: (a.flip(0, -1), a.roll(1, 1), a.roll((1, -1), (0, 2)), a.roll(2)), x
)
case("plain roll", lambda a: (aten.roll(a, [1, -1], [0, 2]), aten.roll(a, [2])), x)
case("repeat", lambda a: (a.repeat(2, 1, 3), a.repeat(2, 1, 1, 1), a.repeat_interleave(2, 1)), x)
case("repeat_interleave of all", lambda a: aten.repeat_interleave(a, 2), x)
case("triangles", lambda a: (a.tril(), a.triu(1), a.tril(-1)), x)
case(
    "diagonal",
    lambda a: (
        a.diagonal(),
        a.diagonal(2, 1, 2),
        a.diagonal(-1, -1, 0),
        a.diagonal(0, 2, 1).sum(-1),
    ),
    floats(3, 4, 5),
)
case("circular padding", lambda a: F.pad(a, (2, 1, 1, 3), "circular"), floats(1, 2, 4, 5))
case("stable sort", lambda a: torch.sort(a, dim=1, stable=True, descending=True), floats(3, 5))
case("pixels", lambda a: (F.pixel_shuffle(a, 2), F.pixel_unshuffle(a, 2)), image)
case(
    "pad",
    lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, 0, 0, 2), value=3), F.pad(a, (-1, 2, 1, -1))),
    x,
)
case(
    "reflect",
    lambda a, b: (F.pad(a, (1, 2), mode="reflect"), F.pad(b, (1, 2, 2, 1), mode="reflect")),
    x,
    image,
)
case(
    "replicate",
    lambda a, b: (F.pad(a, (1, 2), mode="replicate"), F.pad(b, (1, 2, 2, 1), mode="replicate")),
    x,
    image,
)
case(
    "pads of 3 dimensions",
    lambda a: (
        F.pad(a, (1, 1, 1, 1, 1, 0), mode="reflect"),
        F.pad(a, (1, 0, 0, 1, 1, 1), mode="replicate"),
    ),
    floats(1, 1, 3, 3, 3),
)
case(
    "slice_scatter",
    lambda a, b: (torch.slice_scatter(a, b, 1, 1, 3), torch.select_scatter(a, b[:, 0], 1, -1)),
    x,
    floats(2, 2, 4),
)

_positions = integers(0, 3, 2, 5)
case("embedding", F.embedding, integers(0, 7, 2, 5), floats(7, 4))
case("index_select", lambda a, i: a.index_select(1, i), x, integers(0, 3, 5))
case("gather", lambda a, i: a.gather(1, i), floats(2, 3), _positions)
case(
    "index",
    lambda a, i: (a[i], a[:, i], a[i, i], a[:, i, i.flip(0)], a[i[:, None], i], a[..., [-1, 0]]),
    floats(3, 3, 4),
    integers(-3, 3, 2),
)
case(
    "index_put",
    lambda a, i, b: (
        aten.index_put(a, [i], b),
        aten.index_put(a, [i, i], a[0, 0]),
        aten.index_put(a, [i], b, True),
    ),
    x,
    lambda: torch.tensor([1, 0]),
    floats(2, 3, 4),
)
case(
    "scatter",
    lambda a, i, b: (a.scatter(1, i, b), a.scatter(1, i, 2.5), a.scatter_add(1, i, b)),
    floats(2, 5),
    lambda: torch.tensor([[0, 3, 1], [2, 4, 0]]),
    floats(2, 3),
)
case("topk", lambda a: (*a.topk(2), *a.topk(2, 1, largest=False)), x)
case("sort", lambda a: (*a.sort(1), *a.sort(-1, descending=True), *aten.sort(a, 0)), x)

for _name, (_module, _inputs) in MODULES.items():
    case(_name, _module, *_inputs)
