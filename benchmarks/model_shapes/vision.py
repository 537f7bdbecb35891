"""Shapes of models of images: transformers and convolutional networks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from benchmarks.model_shapes.layers import (
    Layer,
    attention,
    convolution,
    depthwise,
    encoder,
    inverted_residual,
)


def models() -> Iterator[tuple[str, Iterator[Layer]]]:
    """Yield the layers of each model."""
    yield "ViT-B/16", _vit(197, 768, 12, 16)
    yield "ViT-B/32", _vit(50, 768, 12, 32)
    yield "ViT-L/16", _vit(197, 1024, 16, 16)
    yield "DeiT-S distilled", _vit(198, 384, 6, 16)
    yield "DINOv2-S/14", _vit(257, 384, 6, 14)
    yield "CLIP ViT-L/14", _vit(257, 1024, 16, 14)
    yield "CLIP text", encoder(77, 512, 8, 2048)
    yield "Stable Diffusion text", encoder(77, 768, 12, 3072)
    yield "Swin-T", _swin()
    yield "ResNet-18", _resnet_basic()
    yield "ResNet-50", _resnet_bottleneck()
    yield "ResNeXt-50", _resnext()
    yield "Inception v3", _inception()
    yield "DenseNet-121", _densenet()
    yield "MobileNetV2", _mobilenet_v2()
    yield "MobileNetV3-L", _mobilenet_v3()
    yield "EfficientNet-B0", _efficientnet(224, 1.0)
    yield "EfficientNet-B3", _efficientnet(300, 1.2)
    yield "ConvNeXt-T", _convnext()
    yield "YOLOv8n", _yolo(640, (16, 32, 64, 128, 256))
    yield "YOLOv5s", _yolo(416, (32, 64, 128, 256, 512))
    yield "DCGAN", _dcgan()


def _vit(tokens: int, width: int, heads: int, patch: int) -> Iterator[Layer]:
    yield "patches", f"conv2d:1,3,224,224,{width},{patch},{patch}"
    yield "head", f"dense:1,1000,{width},bias=True"
    yield "head.softmax", "softmax:1,1000"
    yield from encoder(tokens, width, heads, 4 * width)


def _swin() -> Iterator[Layer]:
    yield "patches", "conv2d:1,3,224,224,96,4,4"
    for width, size in ((96, 56), (192, 28), (384, 14), (768, 7)):
        windows, heads = (size // 7) ** 2, width // 32
        yield f"{width}.qkv", f"dense:{size * size},{3 * width},{width},bias=True"
        yield f"{width}.up", f"dense:{size * size},{4 * width},{width},bias=True,activation=gelu"
        yield f"{width}.norm", f"layer_norm:{size * size},{width}"
        yield from attention(f"{width}.attention", heads * windows, 49, 49, 32)


def _resnet_stem() -> Iterator[Layer]:
    yield convolution("stem", 3, 224, 64, 7, 2)
    yield "stem.pool", "max_pool2d:1,64,112,112,3,2,1"


def _resnet_basic() -> Iterator[Layer]:
    yield from _resnet_stem()
    for width, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        yield convolution(f"{width}.conv", width, size, width, 3)
        yield f"{width}.norm", f"batch_norm:1,{width},{size},{size}"
        yield f"{width}.add", f"add:1,{width},{size},{size}"
        if width > 64:
            yield convolution(f"{width}.down", width // 2, 2 * size, width, 3, 2)
            yield convolution(f"{width}.shortcut", width // 2, 2 * size, width, 1, 2)
    yield "pool", "avg_pool2d:1,512,7,7,7"
    yield "head", "dense:1,1000,512,bias=True"


def _resnet_bottleneck() -> Iterator[Layer]:
    yield from _resnet_stem()
    channels = 64
    for width, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        stride = 1 if width == 64 else 2
        yield convolution(f"{width}.in", channels, size * stride, width, 1)
        yield convolution(f"{width}.down", width, size * stride, width, 3, stride)
        yield convolution(f"{width}.out", width, size, 4 * width, 1)
        yield convolution(f"{width}.shortcut", channels, size * stride, 4 * width, 1, stride)
        yield convolution(f"{width}.reduce", 4 * width, size, width, 1)
        yield f"{width}.relu", f"relu:1,{4 * width},{size},{size}"
        channels = 4 * width
    yield "pool", "avg_pool2d:1,2048,7,7,7"
    yield "head", "dense:1,1000,2048,bias=True"


def _resnext() -> Iterator[Layer]:
    for width, size in ((128, 56), (256, 28), (512, 14), (1024, 7)):
        yield f"{width}.grouped", f"conv2d:1,{width},{size},{size},{width},3,1,1,groups=32"


def _inception() -> Iterator[Layer]:
    yield "stem.1", "conv2d:1,3,299,299,32,3,2"
    yield "stem.2", "conv2d:1,32,149,149,32,3"
    yield "stem.3", "conv2d:1,32,147,147,64,3,1,1"
    yield "stem.pool", "max_pool2d:1,64,147,147,3,2"
    yield "stem.4", "conv2d:1,64,73,73,80,1"
    yield "stem.5", "conv2d:1,80,73,73,192,3"
    yield "35.5x5", "conv2d:1,48,35,35,64,5,1,2"
    yield "35.3x3", "conv2d:1,64,35,35,96,3,1,1"
    yield "35.1x1", "conv2d:1,288,35,35,64,1"
    yield "35.pool", "avg_pool2d:1,288,35,35,3,1,1"
    yield "35.down", "conv2d:1,288,35,35,384,3,2"
    yield "17.1x7", "conv2d:1,128,17,17,128,1x7,1,0x3"
    yield "17.7x1", "conv2d:1,160,17,17,192,7x1,1,3x0"
    yield "17.1x1", "conv2d:1,768,17,17,192,1"
    yield "8.1x3", "conv2d:1,384,8,8,384,1x3,1,0x1"
    yield "8.1x1", "conv2d:1,1280,8,8,320,1"


def _densenet() -> Iterator[Layer]:
    for channels, size in ((64, 56), (224, 28), (480, 14), (992, 7)):
        yield convolution(f"{size}.bottleneck", channels, size, 128, 1)
        yield convolution(f"{size}.grow", 128, size, 32, 3)
        yield f"{size}.norm", f"batch_norm:1,{channels},{size},{size}"
    yield "transition", "avg_pool2d:1,128,56,56,2"


def _mobilenet_v2() -> Iterator[Layer]:
    yield convolution("stem", 3, 224, 32, 3, 2)
    yield from inverted_residual("1", 32, 112, 32, 16, 3)
    rows = [(16, 112, 24, 2), (24, 56, 24, 1), (24, 56, 32, 2), (32, 28, 32, 1)]
    rows += [(32, 28, 64, 2), (64, 14, 96, 1), (96, 14, 96, 1), (96, 14, 160, 2), (160, 7, 320, 1)]
    for number, (channels, size, filters, stride) in enumerate(rows, start=2):
        yield from inverted_residual(str(number), channels, size, 6 * channels, filters, 3, stride)
    yield convolution("last", 320, 7, 1280, 1)
    yield "clip", "clip:1,96,112,112,a_min=0,a_max=6"
    yield "head", "dense:1,1000,1280,bias=True"


def _mobilenet_v3() -> Iterator[Layer]:
    yield convolution("stem", 3, 224, 16, 3, 2)
    rows = [(16, 112, 64, 24, 3, 2), (24, 56, 72, 24, 3, 1), (24, 56, 72, 40, 5, 2)]
    rows += [(40, 28, 120, 40, 5, 1), (40, 28, 240, 80, 3, 2), (80, 14, 184, 80, 3, 1)]
    rows += [(80, 14, 480, 112, 3, 1), (112, 14, 672, 160, 5, 2), (160, 7, 960, 160, 5, 1)]
    for number, (channels, size, hidden, filters, kernel, stride) in enumerate(rows):
        yield from inverted_residual(str(number), channels, size, hidden, filters, kernel, stride)
    yield "squeeze", "avg_pool2d:1,960,7,7,7"
    yield "excite", "dense:1,960,240,bias=True"
    yield "scale", "multiply:1,960,7,7,other=1x960x1x1"


def _efficientnet(image: int, width: float) -> Iterator[Layer]:
    def scaled(channels: int) -> int:
        # As published: to the nearest multiple of 8, but no less than 90%.
        rounded = max(8, int(channels * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * channels * width else rounded

    size = -(-image // 2)
    yield convolution("stem", 3, image, scaled(32), 3, 2)
    yield from inverted_residual("1", scaled(32), size, scaled(32), scaled(16), 3)
    rows = [(16, 24, 3, 2), (24, 40, 5, 2), (40, 80, 3, 2), (80, 112, 5, 1), (112, 192, 5, 2)]
    rows += [(192, 192, 5, 1), (192, 320, 3, 1)]
    for number, (channels, filters, kernel, stride) in enumerate(rows, start=2):
        hidden = 6 * scaled(channels)
        yield from inverted_residual(
            str(number), scaled(channels), size, hidden, scaled(filters), kernel, stride
        )
        size = -(-size // stride)
        yield f"{number}.squeeze", f"avg_pool2d:1,{hidden},{size},{size},{size}"
    yield convolution("last", scaled(320), size, scaled(1280), 1)
    yield "head", f"dense:1,1000,{scaled(1280)},bias=True"


def _convnext() -> Iterator[Layer]:
    yield "patches", "conv2d:1,3,224,224,96,4,4"
    for width, size in ((96, 56), (192, 28), (384, 14), (768, 7)):
        tokens = size * size
        yield depthwise(f"{width}.depthwise", width, size, 7)
        yield f"{width}.norm", f"layer_norm:{tokens},{width}"
        yield f"{width}.up", f"dense:{tokens},{4 * width},{width},bias=True,activation=gelu"
        yield f"{width}.down", f"dense:{tokens},{width},{4 * width},bias=True"
        if size > 7:
            yield f"{width}.next", f"conv2d:1,{width},{size},{size},{2 * width},2,2"


def _yolo(image: int, widths: tuple[int, ...]) -> Iterator[Layer]:
    size = image // 2
    yield convolution("stem", 3, image, widths[0], 3, 2)
    for channels, filters in pairwise(widths):
        yield convolution(f"{filters}.down", channels, size, filters, 3, 2)
        size //= 2
        yield convolution(f"{filters}.split", filters, size, filters, 1)
        yield convolution(f"{filters}.inner", filters // 2, size, filters // 2, 3)
        yield convolution(f"{filters}.box", filters, size, 64, 3)
    yield "pyramid.pool", f"max_pool2d:1,{widths[-1] // 2},{size},{size},5,1,2"
    yield "classes", f"conv2d:1,80,{2 * size},{2 * size},80,1"
    yield "boxes.softmax", f"softmax:{4 * 21 * size * size},16"


def _dcgan() -> Iterator[Layer]:
    for channels, size in ((512, 4), (256, 8), (128, 16)):
        yield f"{channels}", f"conv2d_transpose:1,{channels},{size},{size},{channels // 2},4,2,1"
    yield "image", "conv2d_transpose:1,64,32,32,3,4,2,1"
