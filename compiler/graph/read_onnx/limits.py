"""The limits of models that are read; a model beyond one is refused with a `ModelError`.

They bound the time and the memory that a hostile file can cost, and lie far above real models.
"""

from onnx import defs

MIN_OPSET = 6
"""The oldest version of ONNX's operators, of 2017."""

MAX_OPSET = defs.onnx_opset_version()
"""The newest version that the installed `onnx` has schemas for."""

MAX_MODEL_BYTES = (2 << 30) - 1
"""Bytes of a model file without external data: the limit of protobuf."""

MAX_ELEMENTS = 1 << 34
"""Elements of a tensor: the largest weights of language models have 2^31."""

MAX_NODES = 100_000
"""Nodes of a graph, with unrolled loops and expanded functions: large language models have about
ten thousand."""

MAX_READ_NODES = 250_000
"""Nodes that are read, each time that a loop or a function has them read: some seconds."""

MAX_RANK = 16
"""Dimensions of a tensor: models have 6 at most, and NumPy allows 64."""

MAX_DEPTH = 32
"""Nested functions and subgraphs: models nest 3 or 4."""

MAX_TRIPS = 1024
"""Iterations of a loop, which is unrolled: recurrent models loop over their time steps."""

MAX_FOLDED_BYTES = 2 << 30
"""Bytes of all constants that are computed while a model is read; large models may have 16 times
the bytes of their initializers: bytes become float64, twice."""

MAX_FOLDED_PAIRS = 1 << 32
"""Pairs of an operand's element and a result's element, in a product or a window that is computed
while a model is read: about a second by NumPy."""
