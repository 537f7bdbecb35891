"""Targets: the machines that kernels are made for, with one class for each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.target.error import TargetError
from compiler.target.registry import KindRegistry, UnknownKindError

COLD_OPTION = "-cache=cold"
"""The option of a target whose kernels are timed with cold caches; its name ends with it."""
COLD_SUFFIX = "-cold"
"""The end of the timing label of such a target."""


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A machine to make kernels for: the properties of all kinds of targets.

    The first word of the text is the kind, and the rest its options. `Target("cpu")` is the CPU of
    this host, as a `CpuTarget`; so is `Target("llvm")`, TVM's spelling. Two options narrow it:
    `-mcpu=NAME` takes LLVM's name of a CPU, `-num-cores=N` limits the threads of a kernel.
    `-cache=cold` times kernels with their arrays outside the caches.

    A subclass sets `kind`, and defines `_canonical`, `label` and `num_cores`. Two targets are equal
    if their canonical texts are equal.

    Raises:
        TargetError: If the text names an unknown kind, option or machine, or a bad number.
    """

    kind: ClassVar[str] = ""
    """The kind of device, which is the first word of the text."""

    text: str = "cpu"

    def __new__(cls, text: str = "cpu") -> Any:
        """Make a target of the kind that the text names."""
        return object.__new__(_class_of(text) if cls is Target else cls)

    def __post_init__(self) -> None:
        """Check the text, and replace it by its canonical form."""
        object.__setattr__(self, "text", self._canonical(self.text))

    def __repr__(self) -> str:
        return f"Target({self.text!r})"

    @property
    def name(self) -> str:
        """Return the canonical text, which gives an equal target on any host."""
        return self.text

    @property
    def label(self) -> str:
        """Return the label that routes work to hosts of this kind, such as `cpu/znver4`."""
        raise NotImplementedError

    @property
    def num_cores(self) -> int:
        """Return the number of cores of its host that a kernel may use."""
        raise NotImplementedError

    @property
    def is_cold(self) -> bool:
        """Return whether the arrays of a kernel are evicted before each timed call."""
        return False

    @property
    def timing_label(self) -> str:
        """Return the label of targets whose times compare: `label`, and `-cold` if `is_cold`."""
        return f"{self.label}{COLD_SUFFIX}" if self.is_cold else self.label

    @property
    def is_emulated(self) -> bool:
        """Return whether kernels run in an emulator on the host, and their times are estimates."""
        return False

    @classmethod
    def complete(cls, text: str, labels: Callable[[], Collection[str]]) -> str:
        """Return a text that names a machine, for one that leaves it open, such as `cuda`.

        Args:
            text: A text of this kind; one that names a machine is returned unchanged.
            labels: Returns the labels of the machines to choose from.

        Raises:
            TargetError: If not exactly one of them fits.
        """
        del labels
        return text

    @classmethod
    def _canonical(cls, text: str) -> str:
        """Return the canonical form of a text of this kind.

        Raises:
            TargetError: If the text is not valid.
        """
        raise NotImplementedError


def complete_target(text: str | Target, labels: Callable[[], Collection[str]]) -> Target:
    """Return the target of a text that may leave the machine open.

    Args:
        text: The text; a target is returned unchanged.
        labels: Returns the labels of the machines to choose from; called if the text names none.

    Raises:
        TargetError: If the text is invalid, or not exactly one machine fits it.
    """
    return text if isinstance(text, Target) else Target(_class_of(text).complete(text, labels))


def with_own_kind(text: str) -> str:
    """Return a target text, or the start of one, with TVM's kind "llvm" replaced by "cpu"."""
    return re.sub(r"^\s*llvm(?=\s|$)", "cpu", text)


def kind_of_label(label: str) -> str:
    """Return the kind of the targets of a label: `cpu` for `cpu/znver4`."""
    return label.partition("/")[0]


TARGET_KINDS: KindRegistry[type[Target]] = KindRegistry("target class")
"""The class of each kind; `compiler/target/__init__.py` provides those of the project."""


def _class_of(text: str) -> type[Target]:
    target_text: object = text
    if not isinstance(target_text, str):
        raise TargetError(f"a target is a text such as 'cpu -num-cores=1', not {target_text!r}")
    kind = next(iter(with_own_kind(text).split()), "")
    try:
        return TARGET_KINDS.find(kind)
    except UnknownKindError:
        kinds = ", ".join(map(repr, TARGET_KINDS.kinds))
        example = "such as 'cpu -num-cores=1'"
        message = f"unknown target kind {kind!r} in {text!r}: expected {kinds}, {example}"
        raise TargetError(message) from None
