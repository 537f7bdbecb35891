"""The recorded design spaces: shapes whose best candidates take 10 to 400 microseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recording:
    """A design space to record.

    Attributes:
        operator: The operator; sets of an operator are held out together.
        spec: The operator of the library, as `lw.ops.from_spec` reads it.
        num_whole: The number of candidates drawn from all that compile.
        num_kept: The number of candidates drawn from those that pass the static filter.
        cpu: The CPU to record on, by LLVM's name: it has to be that of the host.
    """

    operator: str
    spec: str
    num_whole: int = 600
    num_kept: int = 450
    cpu: str = "znver3"

    @property
    def name(self) -> str:
        """The name of the set."""
        kind, arguments, *dtype = self.spec.split(":")
        words = arguments.split(",")
        extents = "x".join(word for word in words if "=" not in word)
        options = [word.replace("=", "-") for word in words if "=" in word]
        cpu = [] if self.cpu == "znver3" else [self.cpu]
        return "_".join([kind, extents, *options, *dtype, *cpu])

    @property
    def target(self) -> str:
        """The name of the target: one core of the CPU."""
        return f"cpu -mcpu={self.cpu} -num-cores=1"


RECORDINGS: tuple[Recording, ...] = (
    Recording("matmul", "matmul:256,256,256", 1400, 1000),
    Recording("conv2d", "conv2d:1,32,28,28,32,3,1,1", 1400, 1000),
    Recording("depthwise_conv2d", "depthwise_conv2d:1,64,56,56,3,2,1", 1400, 1000),
    Recording("attention", "attention:1,2,96,96,32", 1400, 1000),
    Recording("dense", "dense:32,512,512"),
    Recording("conv2d", "conv2d:1,16,56,56,32,3,2,1"),
    Recording("batch_matmul", "batch_matmul:4,128,96,64"),
    Recording("matmul", "matmul:64,512,256"),
    Recording("conv1d", "conv1d:1,64,256,64,3,1,1"),
    Recording("max_pool2d", "max_pool2d:1,32,56,56,3,2,1"),
    Recording("conv2d", "conv2d:1,64,28,28,64,1,1,0"),
    Recording("conv2d_nchwc", "conv2d_nchwc:1,32,28,28,32,3,1,1,1,8,8"),
    Recording("mm_relu", "mm_relu:128,192,256", 400, 300),
    Recording("conv3d", "conv3d:1,8,8,16,16,16,3,1,1"),
    Recording("matmul", "matmul:100,300,120"),
    Recording("depthwise_conv2d", "depthwise_conv2d:1,96,28,28,3,1,1"),
    Recording("attention", "attention:1,4,64,64,64"),
    Recording("conv2d_transpose", "conv2d_transpose:1,32,16,16,32,4,2,1", 400, 300),
    Recording("conv2d", "conv2d:1,64,14,14,64,3,1,1"),
    Recording("dense", "dense:64,256,768"),
    Recording("batch_matmul", "batch_matmul:8,64,64,64", 400, 300),
    Recording("conv2d_winograd", "conv2d_winograd:1,32,28,28,32", 400, 300),
    Recording("avg_pool2d", "avg_pool2d:1,32,56,56,2,2,0", 400, 300),
    Recording("matmul", "matmul:384,96,192", 400, 300),
    Recording("matmul_bias_relu", "matmul_bias_relu:128,256,128", 400, 300),
    Recording("conv2d", "conv2d:1,3,64,64,32,7,2,3"),
    Recording("depthwise_conv2d", "depthwise_conv2d:1,32,40,40,5,1,2", 400, 300),
    Recording("conv1d", "conv1d:1,32,512,64,5,2,2", 400, 300),
    Recording("max_pool2d", "max_pool2d:1,64,28,28,2,2,0", 400, 300),
    Recording("attention", "attention:1,1,128,160,48", 400, 300),
    Recording("conv2d_nchwc", "conv2d_nchwc:1,64,14,14,64,3,1,1,1,16,16", 400, 300),
    Recording("linear_relu", "linear_relu:64,256,256", 400, 300),
    # Tiny spaces, whole.
    Recording("softmax", "softmax:256,1024"),
    Recording("softmax", "softmax:512,100"),
    Recording("layer_norm", "layer_norm:256,768"),
    Recording("layer_norm", "layer_norm:512,200"),
    Recording("row_sum", "row_sum:512,1024"),
    Recording("row_sum", "row_sum:1024,300"),
    *(
        Recording(spec.partition(":")[0], spec, 120, 120)
        for spec in (
            # Weights that are constants, and results that pass through a function.
            "dense:16,768,768,constant=W",
            "conv2d:1,64,28,28,64,3,1,1,constant=W",
            "conv2d:1,96,14,14,96,1,1,0,constant=W",
            "dense:128,512,512,bias=true,activation=gelu,constant=W+bias",
            "dense:4,1000,512,constant=W",
            # Odd, narrow, and low extents.
            "matmul:197,64,768",
            "conv2d:1,24,33,33,40,3,1,1",
            "matmul:197,20,768",
            "depthwise_conv2d:1,48,57,57,3,1,1",
            "matmul:33,129,65",
            "attention:1,3,50,50,32",
            "batch_matmul:4,197,64,197",
            "conv1d:1,48,201,48,7,1,3",
            "conv2d:1,40,19,19,88,1,1,0",
            "max_pool2d:1,64,57,57,3,2,1",
            "softmax:197,197",
            "matmul:1,1024,1024",
            "dense:1,2048,512",
            "layer_norm:197,768",
            # Narrow types.
            "matmul:128,512,256:bfloat16",
            "quantized_dense:64,256,256",
            "dense_int8:16,512,512",
            "conv2d:1,32,28,28,32,3,1,1:bfloat16",
            "quantized_conv2d:1,32,14,14,32,3,1,1",
            "dense_int4:8,512,512",
            "matmul:96,200,300:float16",
            "dense:32,512,512:bfloat16",
            "dense_int8:1,1024,1024",
            "matmul:128,128,128:float64",
            "batch_matmul:16,32,128,64:bfloat16",
            # Other layouts, strides, windows and groups.
            "conv2d:1,32,28,28,64,3,2,1",
            "conv2d:1,32,28,28,32,3,1,1,layout=NHWC",
            "depthwise_conv2d:1,96,14,14,3,1,1",
            "conv2d:1,3,96,96,16,3,2,1",
            "conv2d:1,32,28,28,32,3,1,1,1,4",
            "depthwise_conv2d:1,64,28,28,3,1,1,layout=NHWC",
            "conv2d:1,16,28,28,32,5,1,2",
            "depthwise_conv2d:1,64,28,28,5,2,2",
            "matmul:64,320,320,transpose_b=true",
            "matmul:1024,64,256",
            "dense:197,192,192",
            "conv2d_transpose:1,48,10,10,24,4,2,1",
            "conv3d:1,16,6,14,14,16,3,1,1",
            "conv1d:1,80,300,96,3,1,1",
            "conv2d_winograd:1,64,14,14,64,1,4",
            "avg_pool2d:1,32,28,28,3,1,1",
            "avg_pool2d:1,128,14,14,2,2,0",
            # Chains and rows.
            "attention:1,2,128,128,64,causal=true",
            "grouped_query_attention:1,8,2,1,256,64",
            "log_softmax:64,1000",
            "rms_norm:64,1024",
            "group_norm:1,64,28,28,groups=8",
            "transpose:512,384",
            "sum:256,512,axis=0",
        )
    ),
    # Deep sets, of which a long search sees no end.
    *(
        Recording(spec.partition(":")[0], spec, 2000, 2000, "znver5")
        for spec in (
            "matmul:512,512,512",
            "conv2d:1,48,28,28,96,3,1,1",
            "dense:32,768,768,constant=W",
            "depthwise_conv2d:1,72,56,56,3,1,1",
            "conv2d:1,128,14,14,128,1,1,0",
            "attention:1,3,144,144,64",
            "matmul:128,768,256:bfloat16",
            "batch_matmul:8,128,128,64",
            "conv1d:1,64,512,64,3,1,1",
            "conv2d:1,48,20,20,48,3,2,1",
            "quantized_dense:64,512,512",
            "max_pool2d:1,64,56,56,3,2,1",
        )
    ),
    # Vectors of 512 bits and 32 registers; the shapes are others, so that a set of one CPU tells
    # nothing about the winner of the same shape on the other.
    *(
        Recording(spec.partition(":")[0], spec, 120, 120, cpu)
        for cpu in ("znver4", "znver5")
        for spec in (
            "matmul:192,320,256",
            "conv2d:1,64,28,28,64,3,1,1",
            "conv2d:1,128,28,28,64,1,1,0",
            "depthwise_conv2d:1,64,56,56,3,1,1",
            "attention:1,4,96,96,64",
            "dense:48,512,768",
            "conv1d:1,64,500,128,3,1,1",
            "conv2d:1,128,14,14,128,3,1,1",
            "batch_matmul:8,128,64,64",
            "conv2d:1,3,112,112,32,7,2,3",
            "matmul:128,500,300",
            "conv2d:1,32,56,56,48,3,2,1",
            "matmul_bias_relu:128,384,128",
            "max_pool2d:1,48,56,56,3,2,1",
            "conv2d:1,96,7,7,160,1,1,0",
            "depthwise_conv2d:1,96,14,14,5,1,2",
            "attention:1,2,197,197,64",
            "matmul:32,1024,256",
        )
    ),
    # A CPU of another vendor, with the operators of which models know the least among them.
    *(
        Recording(spec.partition(":")[0], spec, 150, 150, "emeraldrapids")
        for spec in (
            "matmul:192,320,256",
            "softmax:384,500",
            "conv2d:1,64,28,28,64,3,1,1",
            "layer_norm:320,512",
            "attention:1,4,96,96,64",
            "conv2d:1,128,28,28,64,1,1,0",
            "depthwise_conv2d:1,64,56,56,3,1,1",
            "dense:48,512,768",
        )
    ),
    # Its tile registers; then products of few rows, the matrices of some of which come from memory,
    # and small ones of odd sizes.
    *(
        Recording(spec.partition(":")[0], spec, 120, 120, "emeraldrapids")
        for spec in (
            "matmul:128,512,256:bfloat16",
            "dense:197,512,768,constant=W:bfloat16",
            "quantized_dense:77,320,640",
            "conv2d:1,64,28,28,64,3,1,1:bfloat16",
            "quantized_conv2d:1,64,28,28,64,3,1,1,layout=NHWC,constant=W+scale",
            "conv2d:1,256,14,14,128,1,1,0:bfloat16",
            "conv2d:1,3,112,112,32,7,2,3,constant=W:bfloat16",
            "matmul:4,4096,1280",
            "dense:2,5120,1024",
            "matmul:12,1024,768",
            "matmul:127,127,127",
            "matmul:256,256,7",
        )
    ),
    # Groups of several channels, of which a model knew one set, and more of what lost in first
    # proposals on vectors of 512 bits: few rows or columns, long windows, and narrow types.
    *(
        Recording(spec.partition(":")[0], spec, 120, 120, "znver5")
        for spec in (
            "conv2d:1,96,28,28,96,3,1,1,groups=4",
            "conv2d:1,128,14,14,128,3,1,1,groups=16",
            "conv2d:1,80,40,40,80,3,2,1,groups=5",
            "conv2d:1,64,28,28,64,3,1,1,groups=16",
            "conv2d:1,3,112,112,192,16,16,0",
            "depthwise_conv2d:1,96,14,14,7,1,3",
            "depthwise_conv2d:1,72,28,28,5,2,2",
            "conv2d:1,128,14,14,128,3,1,1,constant=W",
            "conv2d:1,256,7,7,160,1,1,0,constant=W",
            "matmul:6,2048,1024",
            "matmul:12,800,640",
            "matmul:50,24,640",
            "matmul:101,97,113",
            "matmul:1200,6,256",
            "quantized_dense:100,512,640",
            "quantized_dense:1,1000,1024",
            "quantized_conv2d:1,64,14,14,64,3,1,1,constant=W+scale",
            "quantized_conv2d:1,3,112,112,32,3,2,1,constant=W+scale",
            "dense:100,640,640,constant=W:bfloat16",
            "conv2d:1,64,28,28,64,3,1,1:bfloat16",
            "dense_int4:8,1024,1024",
            "dense_int8:1,1024,2048:bfloat16",
            "softmax:384,500",
            "layer_norm:320,512",
            "conv2d_transpose:1,64,14,14,64,4,2,1",
            "conv2d_transpose:1,48,20,20,24,3,2,1",
            "dense:128,512,512",
            "attention:1,4,77,77,64",
            "attention:1,2,64,512,40",
            "grouped_query_attention:1,16,4,1,512,64:bfloat16",
            "conv2d:1,96,14,14,384,1,1,0,constant=W",
            "conv2d:1,16,112,112,32,1,1,0",
            "conv2d:1,320,14,14,64,3,1,1",
            "depthwise_conv2d:1,144,28,28,3,2,1",
            "rms_norm:100,1024",
            "group_norm:1,64,28,28,groups=8",
            "transpose:600,500",
            "conv1d:1,80,400,128,3,1,1",
            "matmul:1,4096,1024",
            "dense:1,2048,1000",
            "batch_matmul:12,77,77,64",
            "matmul:512,64,64",
            # Small results of long sums, and few channels of bytes.
            "matmul:8,16,4096",
            "matmul:12,8,6000",
            "matmul:200,8,1000",
            "argmax:300,500,axis=1",
            "dense:12,1024,1024,constant=W:bfloat16",
            "quantized_conv2d:1,64,28,28,24,1,1,0,constant=W+scale",
            "quantized_conv2d:1,144,28,28,32,1,1,0,constant=W+scale",
            # One row by constant weights in few bits, in lanes or in panels.
            "quantized_dense:1,1000,1024,constant=W+scale",
            "quantized_dense:1,3072,2048,bias=True,constant=W+scale+bias",
            "quantized_dense:1,1024,1024,reduce_range=True,constant=W+scale",
            "quantized_dense:1,4096,1536,bias=True,reduce_range=True,constant=W+scale+bias",
            "dense_int4:1,2048,4096,constant=W+scale",
            "dense_int4:1,8192,4096,constant=W+scale",
            "dense_int4:1,1024,2048,128,constant=W+scale",
            "dense_int8:1,4096,2048,constant=W+scale",
        )
    ),
    # Sets of more than 500 candidates each: shapes of layers, odd sizes, narrow types, constants.
    *(
        Recording(spec.partition(":")[0], spec, 330, 330, "znver5")
        for spec in (
            "matmul:320,320,320",
            "matmul:49,768,768",
            "matmul:250,7,1200",
            "matmul:77,768,640",
            "matmul:1000,96,96",
            "matmul:256,256,512:float16",
            "matmul:197,384,384:bfloat16",
            "matmul:128,256,300:float64",
            "matmul:32,300,2048",
            "dense:64,1024,512,constant=W",
            "dense:77,640,512,bias=true,activation=gelu,constant=W+bias",
            "dense:16,1000,1280,constant=W",
            "dense:128,512,512,constant=W:bfloat16",
            "dense:197,192,768",
            "dense_int8:64,768,768",
            "dense_int4:4,2048,1024",
            "quantized_dense:128,384,512,constant=W+scale",
            "quantized_dense:50,256,1024",
            "matmul_bias_relu:197,384,192",
            "linear_relu:64,512,512",
            "batch_matmul:12,64,64,64",
            "batch_matmul:8,77,40,77",
            "conv2d:1,56,28,28,112,3,1,1,constant=W",
            "conv2d:1,32,57,57,64,3,2,1",
            "conv2d:1,24,56,56,144,1,1,0",
            "conv2d:1,320,14,14,96,1,1,0,constant=W",
            "conv2d:1,3,160,160,24,3,2,1",
            "conv2d:1,48,35,35,64,3,1,1",
            "conv2d:1,48,28,28,64,3,1,1:bfloat16",
            "conv2d:1,64,28,28,64,3,1,1,layout=NHWC",
            "conv2d:1,64,28,28,64,3,1,1,groups=8",
            "conv2d:1,32,28,28,32,3,1,2,2",
            "conv2d:1,256,7,7,256,3,1,1",
            "conv2d_nchwc:1,64,28,28,64,3,1,1,1,16,16",
            "conv2d_winograd:1,64,28,28,64",
            "quantized_conv2d:1,96,56,56,24,1,1,0,constant=W+scale",
            "quantized_conv2d:1,48,28,28,64,3,1,1,constant=W+scale",
            "depthwise_conv2d:1,144,28,28,3,1,1",
            "depthwise_conv2d:1,240,14,14,5,1,2",
            "depthwise_conv2d:1,96,56,56,3,2,1",
            "depthwise_conv2d:1,192,14,14,7,1,3",
            "conv1d:1,80,1500,64,3,1,1",
            "conv1d:1,128,300,128,5,1,2",
            "conv2d_transpose:1,64,14,14,32,4,2,1",
            "conv3d:1,16,8,20,20,16,3,1,1",
            "attention:1,6,64,64,64",
            "attention:1,4,77,77,40,causal=true",
            "grouped_query_attention:1,32,8,1,256,64",
            "max_pool2d:1,112,28,28,3,1,1",
            "avg_pool2d:1,64,28,28,3,2,1",
            "matmul:160,160,640",
            "matmul:600,128,96",
            "dense:197,768,192,constant=W",
            "dense:100,512,384,constant=W:bfloat16",
            "batch_matmul:6,197,64,96",
            "conv2d:1,64,20,20,128,3,1,1",
            "conv2d:1,192,14,14,64,1,1,0",
            "conv2d:1,24,80,80,48,3,2,1,constant=W",
            "quantized_conv2d:1,64,20,20,64,3,2,1,constant=W+scale",
            "depthwise_conv2d:1,128,40,40,3,1,1",
            "conv1d:1,64,750,64,5,1,2",
            "conv3d:1,8,10,24,24,16,3,1,1",
        )
    ),
)
BY_NAME = {recording.name: recording for recording in RECORDINGS}
