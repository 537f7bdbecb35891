"""The kinds of instructions in a trace: their parameters and outputs.

Recording, replay, the JSON readers and the printed Python all follow it. The methods of `Schedule`
declare it: see `compiler.schedule.methods.primitive`. Names and order of parameters are TVM's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "buffer",
    "index_map",
    "pad_value",
]
"""The kind of values of a parameter.

buffer      ("read" or "write", its number among the block's regions)
factors     integers, None, values, and expressions of values
index_map   the text of a lambda
note        the value of an annotation
pad_value   a number, the text of a lambda, or None
"""

HandleKind: TypeAlias = Literal["b", "l", "v"]
"""The first letter of a handle's name: block, loop, value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an instruction.

    Args:
        is_optional: Whether it may be omitted; it then takes its default.
        is_attribute: Whether TVM keeps it among the attributes of an instruction, not its inputs.
        is_positional: Whether it is printed without its name.
    """

    name: str
    kind: ParameterKind
    is_optional: bool = False
    is_attribute: bool = False
    is_positional: bool = False


@dataclass(frozen=True, slots=True)
class InstructionKind:
    """The parameters and outputs of one kind of instruction.

    Args:
        kind: TVM's name of it in JSON.
        outputs: The kind of handle it returns, if any.
        num_outputs: The number of handles: a number, the name of the parameter that determines it
            (by its value or its length), or None if the program decides.
        is_pure: Whether it leaves the program unchanged, so that it is dead if its outputs are.
        decides: Whether it takes a decision.
    """

    name: str
    kind: str
    parameters: tuple[Parameter, ...]
    outputs: HandleKind | None = None
    num_outputs: int | str | None = 0
    is_pure: bool = False
    decides: bool = False
    required: frozenset[str] = field(init=False, repr=False, compare=False)
    optional: frozenset[str] = field(init=False, repr=False, compare=False)
    _by_name: Mapping[str, Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the parameters by name: replay looks up every argument of every instruction."""
        optional = frozenset(p.name for p in self.parameters if p.is_optional)
        by_name = {p.name: p for p in self.parameters}
        object.__setattr__(self, "required", frozenset(by_name) - optional)
        object.__setattr__(self, "optional", optional)
        object.__setattr__(self, "_by_name", by_name)

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name."""
        return self._by_name.get(name)


INSTRUCTION_KINDS: dict[str, InstructionKind] = {}
"""All kinds by their names, as the methods of `Schedule` declare them.

It is complete once `compiler.schedule` is imported, which comes before any module in it.
"""

KINDS_OF_TVM: dict[str, InstructionKind] = {}
"""All kinds by TVM's names."""

OLD_NAMES = {"get_block": "get_sblock"}
"""Earlier names of instructions, which traces in JSON may still have."""


def register(instruction: InstructionKind) -> None:
    """Add the kind of instruction that a method declares."""
    assert instruction.name not in INSTRUCTION_KINDS, f"{instruction.name} is declared twice"
    INSTRUCTION_KINDS[instruction.name] = instruction
    KINDS_OF_TVM[instruction.kind] = instruction
