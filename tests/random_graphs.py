"""Random graphs of small tensors: products, windows, rows, maps, movements, joins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant

SHAPES = ((2, 3, 4), (6, 4), (1, 4, 6), (1, 3, 6, 6), (4, 6))


class _Drawing:
    """A graph that grows by random nodes, which draw their operands from earlier values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"random_{seed}")
        shapes = [SHAPES[n] for n in self.rng.choice(len(SHAPES), 2, replace=False)]
        self.values = [
            self.builder.input(f"x{number}", TensorType(shape, "float32"))
            for number, shape in enumerate(shapes)
        ]

    def value(self) -> TensorValue:
        """Return a value, rather a new one."""
        position = int(len(self.values) * self.rng.random() ** 0.4)
        return self.values[position]

    def alike(self, x: TensorValue) -> TensorValue:
        """Return a value of the same type."""
        same = [other for other in self.values if other.type == x.type]
        return same[self.rng.integers(len(same))]

    def weights(self, *shape: int) -> Constant:
        """Return a constant of small numbers."""
        return constant(self.rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    def axis(self, x: TensorValue) -> int:
        """Return an axis of a value."""
        return int(self.rng.integers(x.type.rank))


def _product(d: _Drawing) -> TensorValue:
    x = d.value()
    return d.builder.add("matmul", x, d.weights(x.type.static_shape[-1], 4))


def _square(d: _Drawing) -> TensorValue:
    x = d.value()
    axes = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
    return d.builder.add("matmul", x, d.builder.add("permute_dims", x, axes=axes))


def _quantized_product(d: _Drawing) -> TensorValue:
    """Multiply bytes of an input: a power of two as its scale leaves no roundings to differ."""
    x = d.values[int(d.rng.integers(2))]
    dtype, w_dtype = (str(name) for name in d.rng.choice(["int8", "uint8"], 2))
    scale, point = constant(np.float32(2.0**-5)), constant(d.rng.integers(0, 100, ()).astype(dtype))
    narrow = d.builder.add("quantize", x, scale, point, out_dtype=dtype)
    shape = x.type.static_shape[-1], 4
    w = constant(d.rng.integers(-100, 100, shape).astype(w_dtype))
    w_scale = constant(d.rng.uniform(0.001, 0.01, 4).astype(np.float32))
    w_point = (
        constant(np.full(4, d.rng.integers(0, 100), w_dtype)) if d.rng.random() < 0.5 else None
    )
    b = d.builder.add("dequantize", w, w_scale, w_point)
    return d.builder.add("matmul", d.builder.add("dequantize", narrow, scale, point), b)


def _convolution(d: _Drawing) -> TensorValue:
    images = [x for x in d.values if x.type.rank == 4 and min(x.type.static_shape[2:]) > 2]
    if not images:
        return _map(d)
    x = images[d.rng.integers(len(images))]
    weights = d.weights(3, x.type.static_shape[1], 3, 3)
    return d.builder.add("nn.conv2d", x, weights, padding=(1, 1, 1, 1))


def _map(d: _Drawing) -> TensorValue:
    op = str(d.rng.choice(["nn.relu", "nn.silu", "tanh", "abs", "negative"]))
    return d.builder.add(op, d.value())


def _binary(d: _Drawing) -> TensorValue:
    op, x = str(d.rng.choice(["add", "multiply", "subtract"])), d.value()
    other = d.alike(x) if d.rng.random() < 0.6 else d.weights(x.type.static_shape[-1])
    return d.builder.add(op, x, other)


def _number(d: _Drawing) -> TensorValue:
    return d.builder.add("multiply", d.value(), constant(np.float32(d.rng.uniform(-1, 1))))


def _quotient(d: _Drawing) -> TensorValue:
    return d.builder.add("divide", d.value(), constant(np.float32(d.rng.uniform(2, 4))))


def _gate(d: _Drawing) -> TensorValue:
    x = d.value()
    return d.builder.add("multiply", x, d.builder.add("sigmoid", x))


def _batch_norm(d: _Drawing) -> TensorValue:
    images = [x for x in d.values if x.type.rank > 2]
    if not images:
        return _map(d)
    x = images[d.rng.integers(len(images))]
    channels = x.type.static_shape[1]
    variance = constant(d.rng.uniform(0.5, 1.5, channels).astype(np.float32))
    return d.builder.add("nn.batch_norm", x, *(d.weights(channels) for _ in range(3)), variance)


def _rms_norm(d: _Drawing) -> TensorValue:
    x = d.value()
    mean = d.builder.add("mean", d.builder.add("multiply", x, x), axis=(-1,), keepdims=True)
    root = d.builder.add("sqrt", d.builder.add("add", mean, constant(np.float32(0.1))))
    return d.builder.add("divide", x, root)


def _join_with_nothing(d: _Drawing) -> TensorValue:
    x = d.value()
    nothing = d.builder.add("strided_slice", x, axes=(0,), begin=(0,), end=(0,), strides=(1,))
    return d.builder.add("concat", x, nothing, axis=0)


def _row(d: _Drawing) -> TensorValue:
    return d.builder.add("nn.softmax", d.value(), axis=-1)


def _transpose(d: _Drawing) -> TensorValue:
    x = d.value()
    axes = tuple(int(axis) for axis in d.rng.permutation(x.type.rank))
    return d.builder.add("permute_dims", x, axes=axes)


def _reshape(d: _Drawing) -> TensorValue:
    x = d.value()
    *outer, last = x.type.static_shape
    shape = (int(np.prod(outer)), last) if d.rng.random() < 0.5 else (1, *outer, last)
    return d.builder.add("reshape", x, shape=shape) if len(shape) <= 4 else x


def _join(d: _Drawing) -> TensorValue:
    x = d.value()
    return d.builder.add("concat", x, d.alike(x), axis=d.axis(x))


def _split(d: _Drawing) -> TensorValue:
    x = d.value()
    even = [axis for axis, extent in enumerate(x.type.static_shape) if extent % 2 == 0]
    if not even:
        return x
    parts = d.builder.add_all("split", x, indices_or_sections=2, axis=int(d.rng.choice(even)))
    d.values.append(parts[0])
    return parts[1]


DRAWS: tuple[Callable[[_Drawing], TensorValue], ...] = (
    _product,
    _square,
    _quantized_product,
    _convolution,
    _map,
    _map,
    _binary,
    _binary,
    _number,
    _quotient,
    _gate,
    _batch_norm,
    _rms_norm,
    _join_with_nothing,
    _row,
    _transpose,
    _reshape,
    _join,
    _split,
)
LARGEST = 512
"""Elements of a value that further nodes read."""


def random_graph(seed: int, num_nodes: int) -> Graph:
    """Return a graph of about as many nodes; a few values are its results."""
    drawing = _Drawing(seed)
    for _ in range(num_nodes):
        value = DRAWS[drawing.rng.integers(len(DRAWS))](drawing)
        if value.type.num_elements <= LARGEST and value.type.rank <= 4:
            drawing.values.append(value)
    count = int(drawing.rng.integers(1, 4))
    results = [drawing.value() for _ in range(count)]
    return drawing.builder.finish(results, [f"y{number}" for number in range(count)])
