"""Targets: the machines that kernels are made for, with one class for each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.target.error import TargetError
from compiler.target.registry import KindRegistry, UnknownKindError

COLD_OPTION = "-cache=cold"
"""The option of a target whose kernels are timed with cold caches; its name ends with it."""
COLD_SUFFIX = "-cold"
"""The end of the timing label of such a target."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Target:
    """A machine to make kernels for: the properties of all kinds of targets.

    The first word of the text is the kind, and the rest its options. `Target("cpu")` is the CPU of
    this host, as a `CpuTarget`; so is `Target("llvm")`, TVM's spelling. `-mcpu=NAME` takes LLVM's
    name of a CPU, of any architecture, and `-mattr=+NAME,-NAME` adds and removes features;
    `-mtriple=TRIPLE` alone is the oldest CPU of an architecture. `-num-cores=N` limits the threads
    of a kernel, and `-cache=cold` times kernels with their arrays outside the caches.

    A dictionary holds the same options: `Target({"kind": "cpu", "mcpu": "cortex-a76"})`.

    A subclass sets `kind`, and defines `_canonical`, `label` and `num_cores`. Two targets are equal
    if their canonical texts are equal.

    Raises:
        TargetError: If the text names an unknown kind, option or machine, or a bad number.
    """

    kind: ClassVar[str] = ""
    """The kind of device, which is the first word of the text."""

    text: str = "cpu"

    def __new__(cls, text: str | Mapping[str, object] = "cpu") -> Any:
        """Make a target of the kind that the text names."""
        return object.__new__(_class_of(text_of(text)) if cls is Target else cls)

    def __init__(self, text: str | Mapping[str, object] = "cpu") -> None:
        object.__setattr__(self, "text", text_of(text))
        self.__post_init__()

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


def text_of(target: str | Mapping[str, object]) -> str:
    """Return the text of a target that is given as a dictionary; a text is returned unchanged.

    Raises:
        TargetError: If the dictionary names no kind, or a value is not a word.
    """
    if not isinstance(target, Mapping):
        return target
    if not isinstance(target.get("kind"), str):
        raise TargetError(f"a target's dictionary has its kind, such as 'cpu', not {target!r}")
    options = ((name, value) for name, value in target.items() if name != "kind")
    return " ".join([str(target["kind"]), *filter(None, (_option(n, v) for n, v in options))])


def _option(name: str, value: object) -> str:
    """Return an option of a dictionary as a word of a text; empty for one that is False."""
    if isinstance(value, bool):
        return f"-{name}" if value else ""
    words = value if isinstance(value, list | tuple) else [value]
    text = ",".join(map(str, words))
    if not all(isinstance(word, str | int) for word in words) or not text or re.search(r"\s", text):
        raise TargetError(f"option {name!r} of a target is {value!r}: expected a word or a number")
    return f"-{name}={text}"


def complete_target(
    text: str | Mapping[str, object] | Target, labels: Callable[[], Collection[str]]
) -> Target:
    """Return the target of a text that may leave the machine open.

    Args:
        text: The text, or a dictionary; a target is returned unchanged.
        labels: Returns the labels of the machines to choose from; called if the text names none.

    Raises:
        TargetError: If the text is invalid, or not exactly one machine fits it.
    """
    if isinstance(text, Target):
        return text
    plain = text_of(text)
    return Target(_class_of(plain).complete(plain, labels))


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
