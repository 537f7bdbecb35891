"""Instructions of traces: primitives with their arguments, as plain data.

`SPECS` is the one table of what each instruction takes and gives. Recording, replay, the JSON
reader and the printed Python all go by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ParameterKind: TypeAlias = Literal[
    "block",
    "blocks",
    "loop",
    "loops",
    "block_or_loop",
    "loop_or_blocks",
    "factors",
    "int",
    "count",
    "bool",
    "str",
    "optional_str",
    "note",
    "ints",
    "probabilities",
]
HandleKind: TypeAlias = Literal["b", "l", "v"]
"""The first letter of a handle's name: block, loop, value."""

Decision: TypeAlias = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A handle in an instruction, by its name."""

    name: str


Scalar: TypeAlias = Ref | bool | int | float | str | None
Argument: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an instruction takes; it may be left out if `is_optional`."""

    name: str
    kind: ParameterKind
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """What one kind of instruction takes and gives.

    Args:
        outputs: The kind of handle it gives, if any.
        num_outputs: How many of them: a number, the name of the parameter that says so (by its
            value or its length), or None if the program decides.
        is_pure: Whether it leaves the program as it is, so that it is dead if its outputs are.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: HandleKind | None = None
    num_outputs: int | str | None = 0
    is_pure: bool = False
    decides: bool = False

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name."""
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Instruction:
    """A primitive applied: arguments by name in the order of its spec, outputs by their names."""

    name: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[str, ...] = ()
    decision: Decision | None = None

    @property
    def spec(self) -> Spec:
        """What this kind of instruction takes and gives."""
        return SPECS[self.name]

    def refs(self) -> tuple[str, ...]:
        """Return the names of the handles it uses."""
        found: list[str] = []
        for _, value in self.arguments:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Ref):
                    found.append(item.name)
        return tuple(found)


_BLOCK = Parameter("block", "block")
_LOOP = Parameter("loop", "loop")
_AT = Parameter("block_or_loop", "block_or_loop")
_UNIT_ITERS = Parameter("preserve_unit_iters", "bool", is_optional=True)
_UNIT = Parameter("preserve_unit_loops", "bool", is_optional=True)
_INDEX = Parameter("index", "int", is_optional=True)
_SCOPE = Parameter("storage_scope", "str")
_CONSUMERS = Parameter("consumer_blocks", "blocks", is_optional=True)


def _query(name: str, parameter: Parameter, outputs: HandleKind) -> Spec:
    return Spec(name, (parameter,), outputs, None, is_pure=True)


SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        Spec(
            "get_block",
            (Parameter("name", "str"), Parameter("func_name", "optional_str", is_optional=True)),
            "b",
            1,
            is_pure=True,
        ),
        _query("get_loops", _BLOCK, "l"),
        _query("get_child_blocks", _AT, "b"),
        _query("get_producers", _BLOCK, "b"),
        _query("get_consumers", _BLOCK, "b"),
        _query("get_output_blocks", Parameter("scope_block", "block"), "b"),
        Spec(
            "sample_perfect_tile",
            (_LOOP, Parameter("n", "count"), Parameter("max_innermost_factor", "count")),
            "v",
            "n",
            is_pure=True,
            decides=True,
        ),
        Spec(
            "sample_categorical",
            (Parameter("candidates", "ints"), Parameter("probs", "probabilities")),
            "v",
            1,
            is_pure=True,
            decides=True,
        ),
        Spec("split", (_LOOP, Parameter("factors", "factors")), "l", "factors"),
        Spec("fuse", (Parameter("loops", "loops"),), "l", 1),
        Spec("reorder", (Parameter("loops", "loops"),)),
        Spec("parallel", (_LOOP,)),
        Spec("vectorize", (_LOOP,)),
        Spec("unroll", (_LOOP,)),
        Spec("bind", (_LOOP, Parameter("thread_axis", "str"))),
        Spec("compute_at", (_BLOCK, _LOOP, _UNIT, _INDEX)),
        Spec("reverse_compute_at", (_BLOCK, _LOOP, _UNIT, _INDEX)),
        Spec("compute_inline", (_BLOCK,)),
        Spec("reverse_compute_inline", (_BLOCK,)),
        Spec(
            "cache_read",
            (_BLOCK, Parameter("read_buffer_index", "int"), _SCOPE, _CONSUMERS),
            "b",
            1,
        ),
        Spec("cache_write", (_BLOCK, Parameter("write_buffer_index", "int"), _SCOPE), "b", 1),
        Spec("decompose_reduction", (_BLOCK, _LOOP), "b", 1),
        Spec("blockize", (Parameter("target", "loop_or_blocks"), _UNIT_ITERS), "b", 1),
        Spec("rfactor", (_LOOP, Parameter("factor_axis", "int")), "b", 1),
        Spec("annotate", (_AT, Parameter("ann_key", "str"), Parameter("ann_val", "note"))),
        Spec("unannotate", (_AT, Parameter("ann_key", "str"))),
    )
}
