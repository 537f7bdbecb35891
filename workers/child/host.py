"""The greeting of a child: its host, and the sandbox measures that the host lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from compiler.driver import toolchain
from compiler.target.target import kind_of_label


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a child, and the memory that the child uses before any candidate.

    Attributes:
        label: The label of the CPU that the child measures on, such as "cpu/znver3".
        toolchain: The toolchain for that CPU, which may be another host's behind a runner.
        lacks: The measures of `workers.child.sandbox` that the host's kernel did not allow.
    """

    label: str
    toolchain: str
    resident_bytes: int
    lacks: tuple[str, ...] = ()

    def toolchain_for(self, target: str) -> str:
        """Return the toolchain for a target, whose text begins with its kind."""
        kind = target.split(maxsplit=1)[0]
        # A child has the installation of this process, and so the toolchains of other kinds.
        return self.toolchain if kind == kind_of_label(self.label) else toolchain(kind)

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Self:
        """Read the greeting of a child.

        Raises:
            KeyError, TypeError, ValueError: If it is not a greeting.
        """
        return cls(
            str(obj["label"]),
            str(obj["toolchain"]),
            int(obj["resident_bytes"]),
            tuple(map(str, obj["lacks"])),
        )
