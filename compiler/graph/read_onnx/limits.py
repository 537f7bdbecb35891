"""The limits of models that are read; a model beyond one is refused with a `ModelError`.

They bound the time and the memory that a hostile file can cost, and lie far above real models.
"""

MAX_MODEL_BYTES = 2 << 30
"""Bytes of a model file without external data: a message of protobuf has at most 2 GiB."""

MAX_TENSOR_BYTES = 16 << 30
"""Bytes of one tensor: an embedding of 128,256 tokens by 16,384 float32 has 8.4 GB."""

MAX_NODES = 100_000
"""Nodes of a graph, with unrolled loops and expanded functions: large language models have about
ten thousand nodes."""

MAX_RANK = 16
"""Dimensions of a tensor: ONNX models have at most 8 or so; NumPy allows 64."""

MAX_DEPTH = 32
"""Nested functions and subgraphs: real models nest 3 or 4."""

MAX_TRIPS = 4096
"""Iterations of a loop that are unrolled."""
