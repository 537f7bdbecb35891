"""Read nodes in order: each becomes nodes of the graph, or constants.

The reader computes what it can at once: it is an interpreter whose values are constants, symbolic
integers, and tensors that are known only at run time. A node is, in this order: a call of a
function of the model; computed, if it works on symbolic integers; converted (`registry.py`); or
replaced by the body that ONNX gives for its operator.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, GraphProto, NodeProto

from compiler.graph.error import ModelError
from compiler.graph.nodes import constant
from compiler.graph.read_onnx.attributes import AttributeValue, given_attributes, read_attributes
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.functions import FunctionCall, Functions, body_of, domain_of
from compiler.graph.read_onnx.limits import MAX_DEPTH, MAX_READ_NODES
from compiler.graph.read_onnx.old_broadcasting import NUMPY_BROADCASTING, aligned
from compiler.graph.read_onnx.registry import CONVERSIONS
from compiler.graph.read_onnx.schema import check_form, check_types, find_schema
from compiler.graph.read_onnx.symbolic import Result
from compiler.graph.read_onnx.symbolic_operators import apply_symbolic, is_symbolic
from compiler.graph.read_onnx.tensors import TensorReader


@dataclass
class ModelState:
    """What the readers of all scopes of a model share.

    Attributes:
        num_read: The nodes that are read so far, each time that they are.
        unsupported: Results that conversions leave out, by name: a model may not use them.
    """

    emitter: Emitter
    tensors: TensorReader
    functions: Functions
    num_read: int = 0
    unsupported: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeReader:
    """Reads the nodes of a scope: a graph, a subgraph or a function.

    Attributes:
        state: What all scopes share.
        opsets: The version of each operator set, by domain.
        values: The values of this scope and of enclosing graphs by name.
        attributes: The attributes of the call, in a function.
        depth: The number of enclosing scopes.
    """

    state: ModelState
    opsets: Mapping[str, int]
    values: ChainMap[str, Result] = field(default_factory=ChainMap)
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    depth: int = 0

    def read(self, nodes: Iterable[NodeProto]) -> None:
        """Read nodes; their results join the values.

        Raises:
            ModelError: If a node is malformed or not supported.
        """
        for node in nodes:
            try:
                self._read_node(node)
            except ModelError as error:
                raise error.at(node.op_type, _name(node)) from error
            except MemoryError as error:
                reason = f"this process lacks the memory to read it: {error}"
                raise ModelError(reason).at(node.op_type, _name(node)) from error

    def define(self, name: str, value: Result) -> None:
        """Give a name of this scope its value.

        Raises:
            ModelError: If it has one.
        """
        if name in self.values.maps[0]:
            raise ModelError(f"the name {name} is defined twice")
        self.values[name] = value

    def value(self, name: str) -> Result:
        """Return the value of a name.

        Raises:
            ModelError: If it has none.
        """
        if name not in self.values and name in self.state.unsupported:
            raise ModelError(f"{name} is read: {self.state.unsupported[name]} is not supported")
        if name not in self.values:
            raise ModelError(f"{name} is read, but no earlier node makes it")
        return self.values[name]

    def read_graph(self, graph: GraphProto, inputs: Sequence[Result]) -> list[Result]:
        """Return the results of a subgraph, which sees the values of this scope.

        Raises:
            ModelError: If the number of inputs does not fit, or a node is refused.
        """
        if len(inputs) != len(graph.input):
            raise ModelError(f"the subgraph has {len(graph.input)} inputs: expected {len(inputs)}")
        inner = self._inner(self.opsets, self.values.new_child(), self.attributes)
        for value, operand in zip(graph.input, inputs, strict=True):
            inner.define(value.name, operand)
        for tensor in graph.initializer:
            inner.define(tensor.name, constant(self.state.tensors.array(tensor), tensor.name))
        inner.read(graph.node)
        return [inner.value(value.name) for value in graph.output]

    def _inner(
        self,
        opsets: Mapping[str, int],
        values: ChainMap[str, Result],
        attributes: Mapping[str, AttributeProto],
    ) -> NodeReader:
        if self.depth >= MAX_DEPTH:
            raise ModelError(f"functions and subgraphs are nested more than {MAX_DEPTH} deep")
        return NodeReader(self.state, opsets, values, attributes, self.depth + 1)

    def _read_node(self, node: NodeProto) -> None:
        self.state.num_read += 1
        if self.state.num_read > MAX_READ_NODES:
            raise ModelError(
                f"the model has more than {MAX_READ_NODES} nodes, with unrolled loops and expanded"
                " functions"
            )
        inputs = [self.value(name) if name else None for name in node.input]
        attributes = given_attributes(node.attribute, self.attributes)
        results = self._results(node, attributes, inputs)
        for position, name in enumerate(node.output):
            result = results[position] if position < len(results) else None
            if name and result is not None:
                self.define(name, result)
            elif name:
                self.state.unsupported[name] = f"result {position} of {node.op_type}"

    def _results(
        self,
        node: NodeProto,
        attributes: Sequence[AttributeProto],
        inputs: Sequence[Result | None],
    ) -> Sequence[Result | None]:
        called = self.state.functions.find(node, attributes)
        if called is not None:
            return self._call_function(called, inputs)
        domain = domain_of(node.domain)
        if domain not in self.opsets:
            raise ModelError(f"the model does not import the operator set {domain or 'ai.onnx'!r}")
        opset = self.opsets[domain]
        schema = find_schema(node.op_type, opset, domain)
        if schema is None and not domain:
            raise _unsupported(node, domain, opset)
        if schema is not None:
            check_form(schema, node, attributes)
            check_types(schema, inputs)
        values = read_attributes(attributes, self.state.tensors)
        if schema is not None and opset < NUMPY_BROADCASTING:
            inputs = aligned(schema, values, inputs, self.state.emitter, _name(node))
        call = self._call(node, opset, values, inputs)
        if is_symbolic(call):
            return [apply_symbolic(call)]
        conversion = CONVERSIONS.get((domain, node.op_type))
        if conversion is not None:
            results = conversion(call)
            return results if isinstance(results, Sequence) else [results]
        body = None if schema is None else body_of(schema, opset, node, attributes, inputs)
        if body is None:
            raise _unsupported(node, domain, opset)
        return self._call_function(body, inputs)

    def _call(
        self,
        node: NodeProto,
        opset: int,
        attributes: Mapping[str, AttributeValue],
        inputs: Sequence[Result | None],
    ) -> OnnxCall:
        return OnnxCall(
            node.op_type,
            _name(node),
            opset,
            attributes,
            tuple(inputs),
            tuple(node.output),
            self.state.emitter,
            self.read_graph,
        )

    def _call_function(
        self, called: FunctionCall, inputs: Sequence[Result | None]
    ) -> list[Result | None]:
        opsets = {**self.opsets, **called.opsets}  # bodies of ONNX may name their own domain alone
        inner = self._inner(opsets, ChainMap(), called.attributes)
        function = called.function
        for name, operand in zip(function.input, inputs, strict=False):
            if operand is not None:
                inner.define(name, operand)
        missing = {name for name in function.input if name not in inner.values}
        inner.read(_without_missing(function.node, missing))
        return [inner.values.get(name) for name in function.output]


def _without_missing(nodes: Iterable[NodeProto], missing: set[str]) -> Iterable[NodeProto]:
    """Yield nodes whose operands that the call left out are left out."""
    for node in nodes:
        if missing.isdisjoint(node.input):
            yield node
            continue
        changed = NodeProto()
        changed.CopyFrom(node)
        changed.input[:] = ["" if name in missing else name for name in node.input]
        yield changed


def _unsupported(node: NodeProto, domain: str, opset: int) -> ModelError:
    if domain:
        return ModelError(f"the operator of the domain {domain!r} is not supported")
    if find_schema(node.op_type, opset, domain) is None:
        return ModelError(f"ONNX has no such operator in version {opset} of its operator set")
    return ModelError("the operator is not supported")


def _name(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), "")
