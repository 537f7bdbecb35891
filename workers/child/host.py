"""The greeting of a child: its host, and the sandbox measures that the host lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a child, and the memory that the child uses before any candidate.

    Attributes:
        label: The first kind of target that the host serves, such as "cpu/znver3".
        toolchain: The toolchain of that kind.
        other_toolchains: The toolchains of the other kinds of targets, by kind.
        lacks: The measures of `workers.child.sandbox` that the host's kernel did not allow.
    """

    label: str
    toolchain: str
    resident_bytes: int
    lacks: tuple[str, ...] = ()
    other_toolchains: Mapping[str, str] = field(default_factory=dict)

    def toolchain_for(self, target: str) -> str:
        """Return the toolchain for a target, whose text begins with its kind."""
        return self.other_toolchains.get(target.split(maxsplit=1)[0], self.toolchain)

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
            {str(kind): str(text) for kind, text in obj["other_toolchains"].items()},
        )
