"""Recognize convolutions and pools: strides, dilations and paddings from the extents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from compiler.ir.core.nodes import BinOp, Block, IntImm, static_shape
from compiler.ir.core.visit import walk
from compiler.ops.recognizers.facts import ProgramFacts, Shape
from compiler.ops.recognizers.linear import epilogues
from compiler.ops.spec import Spec
from compiler.ops.tensors.windows import LAYOUTS

# A chosen bound: each way is one program to build and compare.
_MAX_WAYS = 8


@dataclass(frozen=True, slots=True)
class _Images:
    """The shapes of an image, of the padded image and of the result: channels, then space."""

    layout: str
    n: int
    channels: int
    space: Shape
    padded: Shape
    out_channels: int
    out_space: Shape

    @property
    def is_first(self) -> bool:
        """Return whether channels come before space."""
        return self.layout.startswith("NC")


def convolutions(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the convolutions with an image, weights and a result of these shapes."""
    if len(facts.inputs) not in {2, 3}:
        return
    weights, *bias = facts.inputs[1:]
    for block, images in _images(facts):
        space = len(images.space)
        if bias not in ([], [(images.out_channels,)]) or len(weights) != space + 2:
            continue
        is_padded = images.padded != images.space
        kernel = weights[2:] if images.is_first else weights[:space]
        more = {"layout": images.layout, "bias": bool(bias)}
        num_blocks = 1 + is_padded + len(bias)
        for windows in islice(_windows(facts, block, images, kernel), _MAX_WAYS):
            for epilogue in epilogues(facts, num_blocks):
                options = {**more, **windows, **epilogue}
                if len(facts.steps(block)) == space:
                    yield from _depthwise(facts, images, weights, kernel, options)
                else:
                    yield from _dense(facts, images, weights, kernel, options)


def pools(facts: ProgramFacts) -> Iterator[Spec]:
    """Yield the pools with an image and a result of these shapes."""
    if len(facts.inputs) != 1:
        return
    for block, images in _images(facts):
        kernel = facts.steps(block)
        if not 2 == len(kernel) == len(images.space) or images.channels != images.out_channels:
            continue
        args = (images.n, images.channels, *images.space, kernel)
        ways = list(islice(_windows(facts, block, images, kernel), _MAX_WAYS))
        for windows, ceil_mode in product(ways, (False, True)):
            options = {**windows, "ceil_mode": ceil_mode, "layout": images.layout}
            if ceil_mode:
                # The reach of the last window hides where the padding ends.
                before = windows["padding"][:2]
                options["padding"] = before + before
            is_mean = len(facts.blocks) - (images.padded != images.space) == 2
            if not is_mean:
                yield facts.spec("max_pool2d", *args, **options)
            elif options.pop("dilation") == (1, 1):
                yield facts.spec("avg_pool2d", *args, **options)
                yield facts.spec("avg_pool2d", *args, **options, count_include_pad=False)


def _images(facts: ProgramFacts) -> Iterator[tuple[Block, _Images]]:
    """Yield the ways in which the first reduction may read its image."""
    block, image = facts.reduction, facts.inputs[0]
    ndim = len(image) - 2
    if block is None or len(facts.output) != len(image) or ndim not in LAYOUTS:
        return
    source = facts.source(block)
    if source is None or len(source.buffer.shape) != len(image):
        return
    read = static_shape(source.buffer)
    for layout in LAYOUTS[ndim]:
        axis = layout.index("C")
        space = [d for d in range(len(image)) if d not in {0, axis}]
        if (read[0], read[axis], facts.output[0]) == (image[0], image[axis], image[0]):
            images = _Images(
                layout=layout,
                n=image[0],
                channels=image[axis],
                space=tuple(image[d] for d in space),
                padded=tuple(read[d] for d in space),
                out_channels=facts.output[axis],
                out_space=tuple(facts.output[d] for d in space),
            )
            yield block, images


def _windows(
    facts: ProgramFacts, block: Block, images: _Images, kernel: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield strides and dilations with the possible paddings, the symmetric ones first."""
    strides, dilations = (_factors(facts, block, images, kind) for kind in ("spatial", "reduce"))
    margins = sorted({0}.union(*(facts.integers(other) for other in facts.blocks)))
    extents = zip(images.space, images.padded, images.out_space, strict=True)
    sides = zip(kernel, strides, dilations, strict=True)
    ways = []
    for (size, padded, count), (extent, stride, dilation) in zip(extents, sides, strict=True):
        if stride < 1 or (padded - dilation * (extent - 1) - 1) // stride + 1 != count:
            return
        total = padded - size
        ways.append([(m, total - m) for m in margins if m <= total])
    for way in sorted(product(*ways), key=lambda way: sum(abs(b - a) for b, a in way)):
        befores, afters = zip(*way, strict=True)
        yield {"stride": strides, "dilation": dilations, "padding": befores + afters}


def _factors(facts: ProgramFacts, block: Block, images: _Images, kind: str) -> Shape:
    """Return the factors of the iterators of a kind in each index of space."""
    source = facts.source(block)
    assert source is not None, "the facts have images"
    mine = {iterator.var for iterator in block.iter_vars if iterator.kind == kind}
    space = source.indices[2:] if images.is_first else source.indices[1:-1]
    return tuple(
        next(
            (
                node.rhs.value
                for node in walk(index)
                if isinstance(node, BinOp)
                and node.op == "*"
                and node.lhs in mine
                and isinstance(node.rhs, IntImm)
            ),
            1,
        )
        for index in space
    )


def _dense(
    facts: ProgramFacts, images: _Images, weights: Shape, kernel: Shape, options: dict[str, Any]
) -> Iterator[Spec]:
    co, inner = weights[:2] if images.is_first else (weights[-1], weights[-2])
    if co != images.out_channels or images.channels % inner:
        return
    args = (images.n, images.channels, *images.space, co, kernel)
    groups = images.channels // inner
    yield facts.spec(f"conv{len(kernel)}d", *args, groups=groups, **options)


def _depthwise(
    facts: ProgramFacts, images: _Images, weights: Shape, kernel: Shape, options: dict[str, Any]
) -> Iterator[Spec]:
    channels, multiplier = weights[:2] if images.is_first else weights[-2:]
    if len(kernel) == 2 and channels == images.channels:
        args = (images.n, channels, *images.space, kernel)
        yield facts.spec("depthwise_conv2d", *args, multiplier=multiplier, **options)
