"""Layers of models: matrix-vector products, narrow types, attention, convolutions.

Weights are constant if the specification says so.
"""

from __future__ import annotations

from benchmarks.workloads.workload import BenchmarkWorkload


def _int4(m: int, group: int) -> BenchmarkWorkload:
    """Return a product with weights of 4 bits; the limit of a single row is their bytes."""
    n = k = 4096
    return BenchmarkWorkload(
        name=f"dense_int4_g{group}_{m}x{n}x{k}",
        op="dense_int4",
        spec=f"dense_int4:{m},{n},{k},{group},constant=W+scale",
        shapes=((m, k), (n, k // group, group // 2), (n, k // group)),
        out=(m, n),
        flops=2.0 * m * n * k,
        unit="GB/s" if m == 1 else "GFLOP/s",
        group="models",
        types=("float32", "uint8", "float32", "float32"),
        max_error=2e-2,  # libraries round inputs and results to bfloat16
    )


def _conv2d(op: str, numbers: tuple[int, int, int, int], groups: int = 1) -> BenchmarkWorkload:
    """Return a convolution in steps of one that keeps the size of its image."""
    ci, size, co, kernel = numbers
    filters = f"{co}," if groups == 1 else ""
    return BenchmarkWorkload(
        name=f"{op}_{ci}x{size}x{size}_{co}_{kernel}x{kernel}_constant",
        op="conv2d",
        spec=f"{op}:1,{ci},{size},{size},{filters}{kernel},1,{kernel // 2},constant=W",
        shapes=((1, ci, size, size), (co, ci // groups, kernel, kernel)),
        out=(1, co, size, size),
        flops=2.0 * co * ci // groups * kernel**2 * size**2,
        group="models",
        options={"stride": 1, "padding": kernel // 2, "groups": groups},
    )


MODELS: tuple[BenchmarkWorkload, ...] = (
    _int4(1, 32),
    _int4(16, 128),
    BenchmarkWorkload(
        name="gqa_decode_bf16_32x8_2048x128",
        op="grouped_query_attention",
        spec="grouped_query_attention:1,32,8,1,2048,128:bfloat16",
        shapes=((1, 32, 1, 128), (1, 8, 2048, 128), (1, 8, 2048, 128)),
        out=(1, 32, 1, 128),
        flops=4.0 * 32 * 2048 * 128,
        unit="GB/s",
        group="models",
        types=("bfloat16",) * 4,
        max_error=1e-2,
    ),
    BenchmarkWorkload(
        name="swiglu_32x4096",
        op="swiglu",
        spec="",  # no operator of the library: `benchmarks.kernels.traces` has its program
        shapes=((32, 4096), (32, 4096)),
        out=(32, 4096),
        flops=4.0 * 32 * 4096,
        unit="GB/s",
        group="models",
    ),
    BenchmarkWorkload(
        name="lm_head_1x50257x768",
        op="dense",
        spec="dense:1,50257,768,constant=W",
        shapes=((1, 768), (50257, 768)),
        out=(1, 50257),
        flops=2.0 * 50257 * 768,
        unit="GB/s",
        group="models",
    ),
    BenchmarkWorkload(
        name="dense_bf16_128x11008x4096",
        op="dense",
        spec="dense:128,11008,4096,constant=W:bfloat16",
        shapes=((128, 4096), (11008, 4096)),
        out=(128, 11008),
        flops=2.0 * 128 * 11008 * 4096,
        group="models",
        types=("bfloat16",) * 3,
        max_error=1e-2,
    ),
    BenchmarkWorkload(
        name="conv1d_gelu_80x3000_384_3",
        op="conv1d_gelu",
        spec="conv1d:1,80,3000,384,3,1,1,bias=True,activation=gelu,constant=W+bias",
        shapes=((1, 80, 3000), (384, 80, 3), (384,)),
        out=(1, 384, 3000),
        flops=2.0 * 384 * 80 * 3 * 3000,
        group="models",
    ),
    BenchmarkWorkload(
        name="attention_12x197x64",
        op="attention",
        spec="attention:1,12,197,197,64",
        shapes=((1, 12, 197, 64),) * 3,
        out=(1, 12, 197, 64),
        flops=4.0 * 12 * 197 * 197 * 64,
        group="models",
    ),
    BenchmarkWorkload(
        name="dense_int8_128x768x768",
        op="quantized_dense",
        spec="quantized_dense:128,768,768,bias=True,reduce_range=True,constant=W+scale+bias",
        shapes=((128, 768), (768, 768), (768,), (768,)),
        out=(128, 768),
        flops=2.0 * 128 * 768 * 768,
        unit="GOP/s",
        group="models",
        types=("uint8", "int8", "float32", "int32", "uint8"),
        max_error=1 / 255,  # libraries round halves in another way
    ),
    BenchmarkWorkload(
        name="layer_norm_residual_197x768",
        op="layer_norm_residual",
        spec="layer_norm:197,768,residual=True",
        shapes=((197, 768), (768,), (768,), (197, 768)),
        out=(197, 768),
        flops=9.0 * 197 * 768,
        unit="GB/s",
        group="models",
    ),
    _conv2d("conv2d", (320, 64, 320, 3)),
    _conv2d("depthwise_conv2d", (240, 14, 240, 5), groups=240),
    _conv2d("conv2d", (960, 7, 160, 1)),
    _conv2d("conv2d", (512, 7, 512, 3)),
)
