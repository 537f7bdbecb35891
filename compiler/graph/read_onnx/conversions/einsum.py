"""Einstein sums: diagonals, then products of pairs of operands, then a permutation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, Shape, product
from compiler.graph.nodes import Operand
from compiler.graph.operators.broadcasting import broadcast_shapes
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator

_ELLIPSIS = "..."


@dataclass(frozen=True)
class _LabeledTensor:
    """A tensor with a label for each of its dimensions, all distinct."""

    value: Operand
    labels: str

    def extent(self, label: str) -> Extent:
        """Return the extent of a dimension."""
        return self.value.type.shape[self.labels.index(label)]

    def extents(self, labels: str) -> Shape:
        """Return the extents of dimensions."""
        return tuple(self.extent(label) for label in labels)


@onnx_operator("Einsum")
def _einsum(call: OnnxCall) -> Operand:
    ranks = [call.type(position).rank for position in range(len(call.inputs))]
    subscripts, output = _parsed(call.string_attr("equation"), ranks)
    terms = [
        _with_distinct_labels(call, _LabeledTensor(call.operand(position), labels))
        for position, labels in enumerate(subscripts)
    ]
    result, *others = terms
    for position, other in enumerate(others):
        later = output + "".join(term.labels for term in others[position + 1 :])
        result = _product(call, result, other, later)
    return _permuted(call, _summed(call, result, output), output).value


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result; an ellipsis becomes small numbers.

    Raises:
        ModelError: If the equation is malformed, or does not fit the operands.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    operands = inputs.split(",")
    if len(operands) != len(ranks):
        raise ModelError(
            f"the equation {equation!r} has {len(operands)} operands, not {len(ranks)}"
        )
    hidden = [
        rank - len(labels.replace(_ELLIPSIS, ""))
        for labels, rank in zip(operands, ranks, strict=True)
    ]
    # Labels that no equation has stand for the dimensions of the ellipsis, counted from the last.
    letters = "".join(chr(0xE000 + number) for number in range(max(0, *hidden)))[::-1]
    expanded = []
    for labels, count in zip(operands, hidden, strict=True):
        if count < 0 or (count and _ELLIPSIS not in labels):
            raise ModelError(f"the equation {equation!r} does not fit the dimensions {ranks}")
        expanded.append(labels.replace(_ELLIPSIS, letters[len(letters) - count :]))
    seen = Counter("".join(expanded))
    if not arrow:
        once = sorted(label for label, count in seen.items() if count == 1 and label.isalpha())
        output = (_ELLIPSIS if _ELLIPSIS in inputs else "") + "".join(once)
    output = output.replace(_ELLIPSIS, letters)
    if len(set(output)) < len(output) or not set(output) <= set(seen) | set(letters):
        raise ModelError(f"the equation {equation!r} has a result that does not follow from it")
    return expanded, output


def _with_distinct_labels(call: OnnxCall, term: _LabeledTensor) -> _LabeledTensor:
    """Return the diagonal over dimensions of one label."""
    for label in dict.fromkeys(term.labels):
        while term.labels.count(label) > 1:
            term = _diagonal(call, term, label)
    return term


def _diagonal(call: OnnxCall, term: _LabeledTensor, label: str) -> _LabeledTensor:
    first = term.labels.index(label)
    second = term.labels.index(label, first + 1)
    rest = [axis for axis in range(len(term.labels)) if axis not in {first, second}]
    value = call.add("permute_dims", term.value, axes=(*rest, first, second))
    *outer, rows, columns = value.type.shape
    if rows != columns or not isinstance(rows, int):
        raise ModelError(f"a diagonal of {rows} by {columns} elements")
    flat = call.add("reshape", value, shape=(*outer, rows * rows))
    axis = len(outer)
    diagonal = call.add(
        "strided_slice", flat, axes=(axis,), begin=(0,), end=(rows * rows,), strides=(rows + 1,)
    )
    return _LabeledTensor(diagonal, "".join(term.labels[axis] for axis in rest) + label)


def _summed(call: OnnxCall, term: _LabeledTensor, remaining: str) -> _LabeledTensor:
    """Return the sum over dimensions whose labels do not remain."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in remaining)
    if not axes:
        return term
    value = call.add("sum", term.value, axis=axes, keepdims=False)
    return _LabeledTensor(value, "".join(label for label in term.labels if label in remaining))


def _permuted(call: OnnxCall, term: _LabeledTensor, labels: str) -> _LabeledTensor:
    if term.labels == labels:
        return term
    axes = tuple(term.labels.index(label) for label in labels)
    return _LabeledTensor(call.add("permute_dims", term.value, axes=axes), labels)


def _product(
    call: OnnxCall, left: _LabeledTensor, right: _LabeledTensor, later: str
) -> _LabeledTensor:
    """Return the product of two terms, summed over their labels that nothing reads later."""
    left = _summed(call, left, later + right.labels)
    right = _summed(call, right, later + left.labels)
    shared = [label for label in left.labels if label in right.labels]
    batch = "".join(label for label in shared if label in later)
    inner = "".join(label for label in shared if label not in later)
    rows = "".join(label for label in left.labels if label not in right.labels)
    columns = "".join(label for label in right.labels if label not in left.labels)
    extents = broadcast_shapes(left.extents(batch), right.extents(batch))
    shape = (*extents, *left.extents(rows), *right.extents(columns))
    a = _permuted(call, left, batch + rows + inner)
    b = _permuted(call, right, batch + inner + columns)
    if inner:
        total = _matrix_product(call, a, b, (batch, inner))
        return _LabeledTensor(call.add("reshape", total, shape=shape), batch + rows + columns)
    ones = (*left.extents(batch), *left.extents(rows), *[1] * len(columns))
    value = call.add("reshape", a.value, shape=ones)
    spread = (*right.extents(batch), *[1] * len(rows), *right.extents(columns))
    factor = call.add("reshape", b.value, shape=spread)
    return _LabeledTensor(call.add("multiply", value, factor), batch + rows + columns)


def _matrix_product(
    call: OnnxCall, a: _LabeledTensor, b: _LabeledTensor, labels: tuple[str, str]
) -> Operand:
    """Return the product of matrices over inner labels, one for each index of batch labels."""
    batch, inner = labels
    common = broadcast_shapes(a.extents(inner), b.extents(inner))
    k = product(common)

    def spread(term: _LabeledTensor) -> Operand:
        shape = tuple(
            common[inner.index(label)] if label in inner else term.extent(label)
            for label in term.labels
        )
        if shape == term.value.type.shape:
            return term.value
        return call.add("broadcast_to", term.value, shape=shape)

    m = product(a.extents(a.labels[len(batch) : len(a.labels) - len(inner)]))
    n = product(b.extents(b.labels[len(batch) + len(inner) :]))
    left = call.add("reshape", spread(a), shape=(*a.extents(batch), m, k))
    right = call.add("reshape", spread(b), shape=(*b.extents(batch), k, n))
    return call.add("matmul", left, right)
