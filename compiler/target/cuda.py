"""NVIDIA GPUs as targets: `cuda -arch=sm_90a`, or `cuda -gpu=h200`, which says the architecture."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from compiler.target.error import TargetError
from compiler.target.gpus import ARCHS, GPUS, Gpu, GpuArch
from compiler.target.target import Target, kind_of_label

_EMULATED = ("-emulated", "--emulated")
_OPTIONS = "expected -gpu=NAME, -arch=NAME or -emulated"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CudaTarget(Target):
    """A GPU of NVIDIA.

    `-gpu=h200` names a model; its architecture follows. `-arch=sm_80` alone is an architecture
    without a model: kernels are built for it and emulated, but no worker has its label.
    `-emulated` is the emulator of such a GPU: it runs kernels on the CPU, and estimates their time.

    Raises:
        TargetError: If the text names an unknown option, GPU or architecture, or two that do not
            fit together.
    """

    kind: ClassVar[str] = "cuda"

    @classmethod
    def of(cls, target: Target) -> CudaTarget:
        """Return `target` as a `CudaTarget`; a target of another kind is a bug of the caller."""
        assert isinstance(target, cls), f"{target!r} is not a GPU"
        return target

    @classmethod
    def complete(cls, text: str, labels: Callable[[], Collection[str]]) -> str:
        """Return a text that names a GPU: for `cuda`, or `cuda -emulated`, the only one that fits.

        Raises:
            TargetError: If the text names no GPU, and none or more than one fits.
        """
        options = text.split()[1:]
        if any(option not in _EMULATED for option in options):
            return text
        available = [label for label in sorted(labels()) if kind_of_label(label) == cls.kind]
        fitting = [label for label in available if label.endswith("-emulated") == bool(options)]
        if len(fitting) == 1:
            return _text_of_label(fitting[0])
        targets = " or ".join(repr(_text_of_label(label)) for label in fitting or available)
        reason = f"name one of these: {targets}" if targets else "no GPU is available here"
        raise TargetError(
            f"target {text!r} names no GPU: {reason}; known GPUs: {', '.join(sorted(GPUS))}"
        )

    @classmethod
    def _canonical(cls, text: str) -> str:
        options = _parse(text)
        model = f" -gpu={options.gpu}" if options.gpu else ""
        return f"cuda -arch={options.arch}{model}{' -emulated' if options.is_emulated else ''}"

    @property
    def arch(self) -> str:
        """Return the architecture, such as `sm_90a`."""
        return _parse(self.text).arch

    @property
    def limits(self) -> GpuArch:
        """Return the limits of the architecture."""
        return ARCHS[self.arch]

    @property
    def gpu(self) -> Gpu | None:
        """Return the model; None if only the architecture is named."""
        name = _parse(self.text).gpu
        return None if name is None else GPUS[name]

    @property
    def is_emulated(self) -> bool:
        """Return whether kernels run in the emulator instead of on a GPU."""
        return _parse(self.text).is_emulated

    @property
    def label(self) -> str:
        """Return the label that routes work to hosts with this GPU, such as `cuda/h200`."""
        options = _parse(self.text)
        suffix = "-emulated" if options.is_emulated else ""
        return f"cuda/{options.gpu or options.arch}{suffix}"

    @property
    def num_cores(self) -> int:
        """Return the number of host threads that launch a kernel: one."""
        return 1


def _text_of_label(label: str) -> str:
    name = label.partition("/")[2]
    suffix = " -emulated" if name.endswith("-emulated") else ""
    return f"cuda -gpu={name.removesuffix('-emulated')}{suffix}"


class _Options(NamedTuple):
    arch: str
    gpu: str | None
    is_emulated: bool


@lru_cache(maxsize=256)
def _parse(text: str) -> _Options:
    """Return the architecture and the name of the GPU that a target text names."""
    kind, *options = text.split() or [""]
    if kind != "cuda":
        raise TargetError(f"a GPU target begins with 'cuda', not {kind!r}: {text!r}")
    arch: str | None = None
    gpu: str | None = None
    for option in options:
        if option in _EMULATED:
            continue
        if option.lstrip("-").startswith("cache="):
            raise TargetError(
                f"option {option!r} in target {text!r} is for CPUs: leave it out; timings on a GPU"
                " keep its L2 cache cold anyway"
            )
        match = re.fullmatch(r"--?(arch|gpu)=(.+)", option)
        if match is None:
            raise TargetError(f"unknown option {option!r} in target {text!r}: {_OPTIONS}")
        if match[1] == "arch":
            arch = _one_of(ARCHS, match[2], "architecture", text)
        else:
            gpu = _one_of(GPUS, match[2], "GPU", text)
    if gpu is not None:
        if arch not in (None, GPUS[gpu].arch):
            raise TargetError(
                f"{gpu} has the architecture {GPUS[gpu].arch}, not {arch}: leave -arch out of "
                f"{text!r}"
            )
        arch = GPUS[gpu].arch
    if arch is None:
        raise TargetError(f"target {text!r} names no GPU: {_OPTIONS}, such as 'cuda -gpu=h200'")
    return _Options(arch, gpu, any(option in _EMULATED for option in options))


def _one_of(names: Iterable[str], name: str, noun: str, text: str) -> str:
    if name not in names:
        near = difflib.get_close_matches(name, list(names), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(names))}"
        raise TargetError(f"unknown {noun} {name!r} in target {text!r}: {hint}")
    return name
