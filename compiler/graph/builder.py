"""Make a graph node by node; readers of models and rewrites use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, Attrs, Graph, Node, Operand, TensorType, TensorValue
from compiler.graph.operator import find_operator


class GraphBuilder:
    """Collects the inputs and the nodes of a graph.

    Args:
        name: The name of the graph.
        taken_names: Names that new values must not have.

    Example:
        builder = GraphBuilder("linear_relu")
        x = builder.input("x", TensorType((1, 784), "float32"))
        product = builder.add("matmul", x, constant(weights))
        graph = builder.finish([builder.add("nn.relu", product)])
    """

    def __init__(self, name: str = "main", taken_names: Iterable[str] = ()) -> None:
        self._name = name
        self._inputs: list[TensorValue] = []
        self._nodes: list[Node] = []
        self._names = set(taken_names)
        self._last_number: dict[str, int] = {}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes so far."""
        return tuple(self._nodes)

    @property
    def last(self) -> Node:
        """Return the node that was added last."""
        return self._nodes[-1]

    def input(self, name: str, tensor_type: TensorType) -> TensorValue:
        """Add an input."""
        value = self._value(name, tensor_type)
        self._inputs.append(value)
        return value

    def add(self, op: str, *inputs: Operand | None, name: str = "", **attrs: Attr) -> TensorValue:
        """Add an operator with one result, and return it; see `add_all`."""
        [value] = self.add_all(op, *inputs, name=name, **attrs)
        return value

    def add_all(
        self, op: str, *inputs: Operand | None, name: str = "", **attrs: Attr
    ) -> tuple[TensorValue, ...]:
        """Add an operator, and return its results; see `apply`."""
        return self.apply(op, inputs, attrs, name=name)

    def apply(
        self,
        op: str,
        inputs: Sequence[Operand | None],
        attrs: Attrs,
        *,
        name: str = "",
        result_names: Sequence[str] = (),
    ) -> tuple[TensorValue, ...]:
        """Add an operator, and return its results.

        Args:
            op: The name of the operator.
            inputs: The operands; None for one that is left out.
            attrs: The attributes that differ from their default values.
            name: The name in the model.
            result_names: The names of the results, one each; otherwise the node names them.

        Raises:
            ModelError: If there is no such operator, or the operands or attributes do not fit.
        """
        try:
            operator = find_operator(op)
            complete = operator.complete(attrs)
            given = [None if operand is None else operand.type for operand in inputs]
            types = operator.infer_types(given, complete)
        except ModelError as error:
            raise error.at(op, name) from error
        names = list(result_names)
        if len(names) != len(types):
            names = [name or op.rpartition(".")[2]] * len(types)
        outputs = tuple(self._value(*pair) for pair in zip(names, types, strict=True))
        self._nodes.append(Node(op, tuple(inputs), outputs, complete, name))
        return outputs

    def append(self, node: Node) -> None:
        """Add a node whose results exist already, such as one of another graph."""
        self._names.update(value.name for value in node.outputs)
        self._nodes.append(node)

    def finish(
        self, outputs: Sequence[Operand], output_names: Sequence[str] | None = None
    ) -> Graph:
        """Return the graph.

        Args:
            outputs: The results: values or constants.
            output_names: The names of the results; by default those of the values.
        """
        names = output_names or [x.name or f"output{k}" for k, x in enumerate(outputs)]
        return Graph(
            self._name, tuple(self._inputs), tuple(self._nodes), tuple(outputs), tuple(names)
        )

    def _value(self, name: str, tensor_type: TensorType) -> TensorValue:
        return TensorValue(self._unique(name), tensor_type)

    def _unique(self, base: str) -> str:
        """Return a name that no value has; thousands of nodes of one name take no time."""
        name, number = base, self._last_number.get(base, 0)
        while name in self._names:
            number += 1
            name = f"{base}_{number}"
        self._last_number[base] = number
        self._names.add(name)
        return name
