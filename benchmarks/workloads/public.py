"""The workloads that are compared with all libraries, in float32.

Sizes of products are `m x n x k`. Convolutions have batch 1, and layouts NCHW and OIHW unless their
names differ.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.workloads.workload import BenchmarkWorkload


def _product(m: int, n: int, k: int, group: str = "public") -> BenchmarkWorkload:
    return BenchmarkWorkload(
        name=f"matmul_{m}x{n}x{k}",
        op="matmul",
        spec=f"matmul:{m},{n},{k}",
        shapes=((m, k), (k, n)),
        out=(m, n),
        flops=2.0 * m * n * k,
        group=group,
    )


def _conv2d(
    ci: int, size: int, co: int, *, kernel: int, stride: int, padding: int
) -> BenchmarkWorkload:
    out = (size + 2 * padding - kernel) // stride + 1
    step = f"s{stride}" if stride > 1 else ""
    return BenchmarkWorkload(
        name=f"conv2d_{ci}x{size}x{size}_{co}_{kernel}x{kernel}{step}",
        op="conv2d",
        spec=f"conv2d:1,{ci},{size},{size},{co},{kernel},{stride},{padding}",
        shapes=((1, ci, size, size), (co, ci, kernel, kernel)),
        out=(1, co, out, out),
        flops=2.0 * co * ci * kernel**2 * out**2,
        options={"stride": stride, "padding": padding, "groups": 1},
    )


PUBLIC: tuple[BenchmarkWorkload, ...] = (
    _product(128, 128, 128),
    _product(512, 512, 512),
    _product(1024, 1024, 1024),
    BenchmarkWorkload(
        name="matmul_bias_relu_512x512x2048",
        op="matmul_bias_relu",
        spec="matmul_bias_relu:512,512,2048",
        shapes=((512, 2048), (2048, 512), (512,)),
        out=(512, 512),
        flops=2.0 * 512 * 512 * 2048,
    ),
    BenchmarkWorkload(
        name="batch_matmul_12x128x128x64",
        op="batch_matmul",
        spec="batch_matmul:12,128,128,64",
        shapes=((12, 128, 64), (12, 64, 128)),
        out=(12, 128, 128),
        flops=2.0 * 12 * 128 * 128 * 64,
    ),
    _conv2d(64, 56, 64, kernel=3, stride=1, padding=1),
    _conv2d(256, 14, 256, kernel=3, stride=1, padding=1),
    _conv2d(3, 224, 64, kernel=7, stride=2, padding=3),
    _conv2d(512, 28, 128, kernel=1, stride=1, padding=0),
    BenchmarkWorkload(
        name="depthwise_96x112x112_3x3s2",
        op="conv2d",
        spec="depthwise_conv2d:1,96,112,112,3,2,1",
        shapes=((1, 96, 112, 112), (96, 1, 3, 3)),
        out=(1, 96, 56, 56),
        flops=2.0 * 96 * 9 * 56 * 56,
        options={"stride": 2, "padding": 1, "groups": 96},
    ),
    BenchmarkWorkload(
        name="softmax_1024x1024",
        op="softmax",
        spec="softmax:1024,1024",
        shapes=((1024, 1024),),
        out=(1024, 1024),
        flops=4.0 * 1024 * 1024,
        unit="GB/s",
    ),
    BenchmarkWorkload(
        name="layer_norm_1024x768",
        op="layer_norm",
        spec="layer_norm:1024,768",
        shapes=((1024, 768), (768,), (768,)),
        out=(1024, 768),
        flops=8.0 * 1024 * 768,
        unit="GB/s",
    ),
    BenchmarkWorkload(
        name="add_relu_1M",
        op="add_relu",
        spec="",  # no operator of the library: `benchmarks.kernels.ours` has its program
        shapes=((1 << 20,), (1 << 20,)),
        out=(1 << 20,),
        flops=2.0 * (1 << 20),
        unit="GB/s",
    ),
    BenchmarkWorkload(
        name="row_sum_1024x1024",
        op="row_sum",
        spec="row_sum:1024,1024",
        shapes=((1024, 1024),),
        out=(1024,),
        flops=1024.0 * 1024,
        unit="GB/s",
    ),
    BenchmarkWorkload(
        name="transpose_2048x2048",
        op="transpose",
        spec="transpose:2048,2048",
        shapes=((2048, 2048),),
        out=(2048, 2048),
        flops=0.0,
        unit="GB/s",
    ),
    BenchmarkWorkload(
        name="attention_12x128x64",
        op="attention",
        spec="attention:1,12,128,128,64",
        shapes=((1, 12, 128, 64),) * 3,
        out=(1, 12, 128, 64),
        flops=4.0 * 12 * 128 * 128 * 64,
    ),
    BenchmarkWorkload(
        name="mm_relu_128x128x128",
        op="mm_relu",
        spec="mm_relu:128,128,128",
        shapes=((128, 128), (128, 128)),
        out=(128, 128),
        flops=2.0 * 128**3,
        group="seed",
    ),
    BenchmarkWorkload(
        name="linear_relu_1x200x3072",
        op="linear_relu",
        spec="linear_relu:1,200,3072",
        shapes=((1, 3072), (200, 3072)),
        out=(1, 200),
        flops=2.0 * 200 * 3072,
        unit="GB/s",
        group="seed",
    ),
    BenchmarkWorkload(
        name="dense_512x512x512",
        op="dense",
        spec="dense:512,512,512",
        shapes=((512, 512), (512, 512)),
        out=(512, 512),
        flops=2.0 * 512**3,
        group="seed",
    ),
    _product(2048, 2048, 2048, group="extra"),
    replace(  # rated by the operations of a direct convolution, of which it does a quarter
        _conv2d(64, 56, 64, kernel=3, stride=1, padding=1),
        name="conv2d_winograd_64x56x56_64_3x3",
        spec="conv2d_winograd:1,64,56,56,64,1,4",
        group="extra",
    ),
    BenchmarkWorkload(
        name="conv2d_nhwc_56x56x64_64_3x3",
        op="conv2d_nhwc",
        spec="conv2d:1,64,56,56,64,3,1,1,layout=NHWC",
        shapes=((1, 56, 56, 64), (3, 3, 64, 64)),
        out=(1, 56, 56, 64),
        flops=2.0 * 64 * 64 * 9 * 56 * 56,
        group="extra",
        options={"stride": 1, "padding": 1, "groups": 1},
    ),
)
