"""Read the models of users: their programs, and the graph of their calls. Nothing is executed.

A model travels as the text of its graph, in which weights are named by their digests. What is
constant is folded by the client, which has the weights; the programs of both are the same.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from math import prod

from pydantic import BaseModel, ConfigDict

from compiler.graph.error import ModelError
from compiler.graph.lower import LoweredGroup
from compiler.graph.nodes import Constant, Graph, Operand, TensorValue
from compiler.graph.tasks import ModelTask
from compiler.graph.text.parser import parse_graph
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.package.assemble import LoweredModel
from compiler.package.lower_model import lower_model
from compiler.script.error import ScriptError
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.text_reader import child_reader, shared_model_reader
from service.intake.workload_text import stored_form
from service.wire.model_reads import ModelStep
from service.wire.requests import ModelSource

MAX_STEPS = 10_000
"""Calls of kernels in a run: pages draw them all. Large models have about a thousand. Chosen."""


class NewModelTask(BaseModel):
    """A program of a model: its weight is the number of its runs in one run of the model."""

    model_config = ConfigDict(frozen=True)

    workload: NewWorkload
    operators: str
    weight: float
    size_bytes: int  # of all its parameters


class NewModel(BaseModel):
    """A model of a request: its programs, and the calls of their kernels in order."""

    model_config = ConfigDict(frozen=True)

    tasks: tuple[NewModelTask, ...]
    steps: tuple[ModelStep, ...]


def read_model(source: ModelSource) -> NewModel:
    """Return the programs of a model; read it in a child of its own if children read texts.

    Raises:
        UnprocessableError: If the model is malformed, or needs what is not supported.
        ServiceBusyError: If too many models wait.
    """
    reader = child_reader()
    if reader is None:
        return read_model_here(source)
    answer = shared_model_reader().ask(reader.caller, "model", source.model_dump())
    return NewModel.model_validate(answer)


def read_model_here(source: ModelSource) -> NewModel:
    """Return the programs of a model, read in this process.

    Raises:
        UnprocessableError: If the model is malformed, or needs what is not supported.
    """
    try:
        lowered = lower_model(_graph(source))
    except ModelError as error:
        raise _refused(str(error), _pointer(source)) from error
    if not lowered.tasks:
        raise _refused("the model computes nothing: there is no program to tune", _pointer(source))
    if len(lowered.steps) > MAX_STEPS:
        detail = f"the model calls {len(lowered.steps)} kernels in a run: expected {MAX_STEPS}"
        raise _refused(f"{detail} at most", _pointer(source))
    return NewModel(
        tasks=tuple(_task(task, _pointer(source)) for task in lowered.tasks), steps=_steps(lowered)
    )


def _graph(source: ModelSource) -> Graph:
    if source.graph is None:
        return _read_onnx(source)
    try:
        return parse_graph(source.graph)
    except ScriptError as error:
        # The detail is the whole text with its caret; the flaw is for programs.
        flaw = Flaw(error.message, _pointer(source), error.line, error.column)
        raise UnprocessableError(str(error), flaw) from error


def _read_onnx(source: ModelSource) -> Graph:
    assert source.onnx is not None, "the wire model has one of the two"
    try:
        file = base64.b64decode(source.onnx, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused(f"the file is not in base64: {error}", _pointer(source)) from error
    try:
        read_onnx = import_module("compiler.graph.read_onnx").read_onnx
    except ImportError:
        detail = (
            "this service does not read ONNX files: its administrator can install"
            " 'loopwright[onnx]'; `graph` takes the text of a model, which the client writes"
        )
        raise _refused(detail, _pointer(source)) from None
    graph: Graph = read_onnx(file, shapes=source.shapes)
    return graph


def _task(task: ModelTask, pointer: str) -> NewModelTask:
    buffers = [param for param in task.func.params if isinstance(param, Buffer)]
    return NewModelTask(
        workload=stored_form(task.func, pointer),
        operators=task.groups[0].group.label[:255] or "copy",
        weight=task.weight,
        size_bytes=sum(prod(static_shape(b)) * size_bytes(b.dtype) for b in buffers),
    )


def _steps(model: LoweredModel) -> tuple[ModelStep, ...]:
    """Return the calls of kernels, each with the calls whose results it reads."""
    number = {group: n for n, task in enumerate(model.tasks) for group in task.groups}
    writers: Mapping[Operand, list[tuple[range, int]]] = defaultdict(list)
    steps = []
    for index, group in enumerate(model.steps):
        steps.append(
            ModelStep(
                name=_name(group), task=number[group], after=_read_from(group, model, writers)
            )
        )
        for value in group.results:
            root, where = _place(value, model)
            writers[root].append((where, index))
    return tuple(steps)


def _read_from(
    group: LoweredGroup,
    model: LoweredModel,
    writers: Mapping[Operand, list[tuple[range, int]]],
) -> tuple[int, ...]:
    read = set[int]()
    for operand in group.operands:
        if isinstance(operand, Constant):
            continue
        root, where = _place(operand, model)
        overlapping = (
            index
            for written, index in writers.get(root, ())
            if written.start < where.stop and where.start < written.stop
        )
        read.update(overlapping)
    return tuple(sorted(read))


def _place(value: TensorValue, model: LoweredModel) -> tuple[Operand, range]:
    """Return the memory of a value: its root, and the bytes within."""
    storage = model.memory.storage(value)
    return storage.root, range(storage.offset, storage.offset + value.type.size_bytes)


def _name(group: LoweredGroup) -> str:
    if not group.group.nodes:
        return "copy of a result"
    last = group.group.nodes[-1]
    return (last.name or last.outputs[0].name)[:255]


def _pointer(source: ModelSource) -> str:
    return "/model/graph" if source.onnx is None else "/model/onnx"


def _refused(detail: str, pointer: str) -> UnprocessableError:
    return UnprocessableError(detail, Flaw(detail, pointer))
