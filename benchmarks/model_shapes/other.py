"""Shapes of models of sound, of diffusion, and of recommendations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from benchmarks.model_shapes.layers import Layer, attention, convolution, encoder


def models() -> Iterator[tuple[str, Iterator[Layer]]]:
    """Yield the layers of each model."""
    yield "Whisper-tiny", _whisper(384, 6)
    yield "Whisper-base", _whisper(512, 8)
    yield "Whisper-small", _whisper(768, 12)
    yield "wav2vec 2.0", _wav2vec()
    yield "Stable Diffusion UNet", _unet()
    yield "Stable Diffusion decoder", _image_decoder()
    yield "DLRM", _dlrm()
    yield "Wide & Deep", _wide_and_deep()
    yield "Neural collaborative filtering", _collaborative_filtering()
    yield "Two towers", _two_towers()


def _whisper(width: int, heads: int) -> Iterator[Layer]:
    yield "conv.1", f"conv1d:1,80,3000,{width},3,1,1,bias=True,activation=gelu"
    yield "conv.2", f"conv1d:1,{width},3000,{width},3,2,1,bias=True,activation=gelu"
    yield from encoder(1500, width, heads, 4 * width)
    yield "decode.projection", f"dense:1,{width},{width},bias=True"
    yield "decode.up", f"dense:1,{4 * width},{width},bias=True,activation=gelu"
    yield "decode.head", f"matmul:1,51865,{width}"
    yield "decode.softmax", "softmax:1,51865"
    yield from attention("decode.cross", heads, 1, 1500, 64)
    yield from attention("decode.self", heads, 1, 223, 64)


def _wav2vec() -> Iterator[Layer]:
    yield "features.1", "conv1d:1,1,16000,512,10,5"
    length = 3199
    for number in range(2, 6):
        yield f"features.{number}", f"conv1d:1,512,{length},512,3,2"
        length = (length - 3) // 2 + 1
    yield "features.6", f"conv1d:1,512,{length},512,2,2"
    yield from encoder(49, 768, 12, 3072)


def _unet() -> Iterator[Layer]:
    yield convolution("in", 4, 64, 320, 3)
    yield convolution("out", 320, 64, 4, 3)
    for width, size in ((320, 64), (640, 32), (1280, 16), (1280, 8)):
        tokens, depth = size * size, width // 8
        yield convolution(f"{size}.conv", width, size, width, 3)
        yield convolution(f"{size}.up", 2 * width, size, width, 3)
        yield convolution(f"{size}.shortcut", 2 * width, size, width, 1)
        yield f"{size}.silu", f"silu:1,{width},{size},{size}"
        yield f"{size}.groups", f"group_norm:1,{width},{size},{size},groups=32,activation=silu"
        if size > 8:
            yield convolution(f"{size}.down", width, size, width, 3, 2)
            yield f"{size}.projection", f"dense:{tokens},{width},{width},bias=True"
            yield f"{size}.gated", f"dense:{tokens},{8 * width},{width},bias=True"
            yield f"{size}.norm", f"layer_norm:{tokens},{width}"
            yield from attention(f"{size}.self", 8, tokens, tokens, depth)
            yield from attention(f"{size}.cross", 8, tokens, 77, depth)
    yield "time", "dense:1,1280,320,bias=True,activation=silu"


def _image_decoder() -> Iterator[Layer]:
    for channels, size, filters in ((512, 64, 512), (512, 128, 512), (512, 256, 256)):
        yield convolution(f"{size}", channels, size, filters, 3)
    yield convolution("last", 128, 512, 3, 3)


def _perceptron(name: str, batch: int, widths: tuple[int, ...]) -> Iterator[Layer]:
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        spec = f"dense:{batch},{outputs},{inputs},bias=True,activation=relu"
        yield f"{name}.{number}", spec


def _dlrm() -> Iterator[Layer]:
    for batch in (1, 128):
        yield from _perceptron(f"bottom.{batch}", batch, (13, 512, 256, 128))
        yield from _perceptron(f"top.{batch}", batch, (479, 1024, 1024, 512, 256, 1))
        yield (
            f"interactions.{batch}",
            f"batch_matmul:{batch},27,27,128,transpose_b=True",
        )
    yield "embedding", "embedding:100000,128,128"


def _wide_and_deep() -> Iterator[Layer]:
    yield from _perceptron("deep", 100, (1170, 1024, 512, 256, 1))
    yield "click", "sigmoid:100,1"


def _collaborative_filtering() -> Iterator[Layer]:
    yield from _perceptron("mlp", 1000, (256, 256, 128, 64))
    yield "embedding", "embedding:138493,64,1000"
    yield "product", "multiply:1000,64"


def _two_towers() -> Iterator[Layer]:
    yield from _perceptron("user", 50, (200, 512, 256, 100))
    yield "scores", "matmul:50,9973,100,transpose_b=True"
    yield "softmax", "softmax:50,9973"
    yield "best", "argmax:50,9973,axis=1"
