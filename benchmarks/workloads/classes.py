"""Classes of operators beside those of `public` and `models`: three shapes each or more."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from benchmarks.workloads.workload import BenchmarkWorkload


def _convolution(
    channels: tuple[int, int],
    size: int,
    *,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> BenchmarkWorkload:
    ci, co = channels
    out = (size + 2 * padding - kernel) // stride + 1
    is_depthwise = groups == ci == co
    filters = "" if is_depthwise else f"{co},"
    op = "depthwise_conv2d" if is_depthwise else "conv2d"
    options = f",groups={groups}" if groups > 1 and not is_depthwise else ""
    shown = f"s{stride}" if stride > 1 else ""
    shown += f"_g{groups}" if groups > 1 else ""
    return BenchmarkWorkload(
        name=f"conv2d_{ci}x{size}x{size}_{co}_{kernel}x{kernel}{shown}",
        op="conv2d",
        spec=f"{op}:1,{ci},{size},{size},{filters}{kernel},{stride},{padding}{options}",
        shapes=((1, ci, size, size), (co, ci // groups, kernel, kernel)),
        out=(1, co, out, out),
        flops=2.0 * co * ci // groups * kernel**2 * out**2,
        group="classes",
        options={"stride": stride, "padding": padding, "groups": groups},
    )


def _transposed(ci: int, size: int, co: int, kernel: int) -> BenchmarkWorkload:
    """Return a transposed convolution in steps of two, with a padding of one."""
    out = 2 * (size - 1) + kernel - 2
    return BenchmarkWorkload(
        name=f"conv2d_transpose_{ci}x{size}x{size}_{co}_{kernel}x{kernel}s2",
        op="conv2d_transpose",
        spec=f"conv2d_transpose:1,{ci},{size},{size},{co},{kernel},2,1",
        shapes=((1, ci, size, size), (ci, co, kernel, kernel)),
        out=(1, co, out, out),
        flops=2.0 * ci * co * kernel**2 * size**2,
        group="classes",
        options={"stride": 2, "padding": 1},
    )


def _rows(op: str, rows: int, columns: int) -> BenchmarkWorkload:
    is_argmax = op == "argmax"
    return BenchmarkWorkload(
        name=f"{op}_{rows}x{columns}",
        op=op,
        spec=f"{op}:{rows},{columns},axis=1",
        shapes=((rows, columns),),
        out=(rows,) if is_argmax else (rows, columns),
        flops=1.0 * rows * columns,
        unit="GB/s",
        group="classes",
        types=("float32", "int32") if is_argmax else (),
    )


def _product(m: int, n: int, k: int) -> BenchmarkWorkload:
    return BenchmarkWorkload(
        name=f"matmul_{m}x{n}x{k}",
        op="matmul",
        spec=f"matmul:{m},{n},{k}",
        shapes=((m, k), (k, n)),
        out=(m, n),
        flops=2.0 * m * n * k,
        group="classes",
    )


def _quantized(convolution: BenchmarkWorkload) -> BenchmarkWorkload:
    """Return a convolution of bytes with constant weights, whose results are bytes."""
    image, weights = convolution.shapes
    return replace(
        convolution,
        name=f"quantized_{convolution.name}",
        op="quantized_conv2d",
        spec=f"quantized_{convolution.spec},constant=W+scale",
        shapes=(image, weights, weights[:1]),
        unit="GOP/s",
        types=("uint8", "int8", "float32", "uint8"),
        max_error=1 / 255,  # libraries round halves in another way
    )


def _quantized_dense(m: int, n: int, k: int) -> BenchmarkWorkload:
    """Return a product of bytes without the promise that values have 7 bits."""
    shapes = ((m, k), (n, k), (n,), (n,))
    return BenchmarkWorkload(
        name=f"dense_int8_{m}x{n}x{k}_8bits",
        op="quantized_dense",
        spec=f"quantized_dense:{m},{n},{k},bias=True,constant=W+scale+bias",
        shapes=shapes,
        out=(m, n),
        flops=2.0 * prod((m, n, k)),
        unit="GOP/s",
        group="classes",
        types=("uint8", "int8", "float32", "int32", "uint8"),
        max_error=1 / 255,
    )


CLASSES: tuple[BenchmarkWorkload, ...] = (
    _transposed(128, 28, 64, 4),
    _transposed(512, 4, 256, 4),
    _transposed(64, 56, 32, 3),
    _convolution((128, 128), 56, kernel=3, padding=1, groups=32),
    _convolution((256, 256), 28, kernel=3, padding=1, groups=8),
    _convolution((256, 256), 56, kernel=3, stride=2, padding=1, groups=64),
    _convolution((96, 96), 56, kernel=7, padding=3, groups=96),
    _convolution((3, 32), 299, kernel=3, stride=2),
    _rows("argmax", 1, 50257),
    _rows("argmax", 1024, 1000),
    _rows("argmax", 64, 32000),
    _rows("cumsum", 1024, 1024),
    _rows("cumsum", 64, 50257),
    _rows("cumsum", 4096, 128),
    _product(197, 20, 768),
    _product(77, 24, 512),
    _product(2048, 3, 64),
    _product(1000, 10, 256),
    _product(129, 33, 513),
    _quantized_dense(128, 768, 768),
    _quantized(_convolution((3, 64), 224, kernel=7, stride=2, padding=3)),
    _quantized(_convolution((64, 64), 56, kernel=3, padding=1)),
    _quantized(_convolution((256, 64), 56, kernel=1)),
)
