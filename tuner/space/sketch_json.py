"""Sketches as JSON, with their knobs and nests, so that no rule is needed to restore them.

An object of one of our classes has the name of the class under "is"; a field that an older file
lacks gets its default. Arrays are tuples, {"set": [...]} is a frozen set.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from compiler.executor.named_type import named_type
from compiler.schedule.trace.trace import Trace
from tuner.space.analysis.block_facts import BlockFacts, IterAxis, TensorAccess
from tuner.space.analysis.operations import Operations
from tuner.space.tables.kernel_blocks import KernelBlocks
from tuner.space.tables.knob import ChoiceKnob, CutKnob, TileKnob
from tuner.space.tables.loop_slots import LoopSlot
from tuner.space.tables.nest import TiledNest
from tuner.space.tables.shared_copies import SharedCopy
from tuner.space.tables.sketch import Sketch
from tuner.space.tables.tensor_tile import TensorTile

_KINDS: dict[str, type] = {
    "Access": TensorAccess,
    "Axis": IterAxis,
    "BlockFacts": BlockFacts,
    "ChoiceKnob": ChoiceKnob,
    "CutKnob": CutKnob,
    "DotGroup": DotGroup,
    "KernelBlocks": KernelBlocks,
    "Nest": TiledNest,
    "Operations": Operations,
    "SharedCopy": SharedCopy,
    "Sketch": Sketch,
    "Slot": LoopSlot,
    "TensorTile": TensorTile,
    "TileKnob": TileKnob,
}
"""Classes by the names that files have for them, which do not change when a class is renamed."""
_NAMES = {kind: name for name, kind in _KINDS.items()}
_STORED_FIELDS = {"remainder_levels": "rest"}
"""Fields whose name in files is another one."""
_FIELDS = {stored: field for field, stored in _STORED_FIELDS.items()}


def write_sketch(sketch: Sketch) -> dict[str, Any]:
    """Return a sketch as a JSON-able object."""
    written: dict[str, Any] = _write(sketch)
    return written


def read_sketch(obj: dict[str, Any]) -> Sketch:
    """Return the sketch that `write_sketch` wrote.

    Raises:
        ValueError: If it is not a sketch.
        TraceError: If its trace is not a trace.
    """
    sketch = _read(obj)
    if not isinstance(sketch, Sketch):
        raise ValueError(f"expected a sketch, not {named_type(sketch)}")
    return sketch


def _write(value: Any) -> Any:
    if isinstance(value, Trace):
        return {"is": "Trace", "trace": value.to_json()}
    if type(value) in _NAMES:
        members = {
            _STORED_FIELDS.get(field.name, field.name): _write(getattr(value, field.name))
            for field in fields(value)
        }
        return {"is": _NAMES[type(value)], **members}
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    if isinstance(value, tuple):
        return [_write(item) for item in value]
    return value


def _read(value: Any) -> Any:
    match value:
        case list():
            return tuple(_read(item) for item in value)
        case {"set": list(items)}:
            return frozenset(items)
        case {"is": "Trace", "trace": dict(trace)}:
            return Trace.from_json(trace)
        case {"is": str(name), **members} if name in _KINDS:
            return _KINDS[name](
                **{_FIELDS.get(str(key), str(key)): _read(item) for key, item in members.items()}
            )
        case dict():
            raise ValueError(f"expected something that a sketch is made of, not {str(value)[:80]}")
        case _:
            return value
