"""A small model: two equal layers of an image and a classifier."""

from __future__ import annotations

import numpy as np

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant
from compiler.package.lower_model import lower_model


def network() -> Graph:
    """Return a model of two convolutions that are one task, a product and a softmax."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> Constant:
        return constant(rng.uniform(-0.2, 0.2, shape).astype(np.float32))

    def layer(x: TensorValue) -> TensorValue:
        y = builder.add("nn.conv2d", x, weights(8, 8, 3, 3), padding=(1, 1, 1, 1))
        return builder.add(
            "nn.relu", builder.add("add", builder.add("add", y, weights(8, 1, 1)), x)
        )

    builder = GraphBuilder("network")
    x = layer(layer(builder.input("image", TensorType((1, 8, 10, 10), "float32"))))
    rows = builder.add("reshape", x, shape=(8, 100))
    classes = builder.add("add", builder.add("matmul", rows, weights(100, 5)), weights(5))
    return builder.finish([builder.add("nn.softmax", classes)], ["probabilities"])


def skeleton(graph: Graph) -> str:
    """Return the text of a model after rewriting, which names weights by their digests."""
    return lower_model(graph).graph.script()
