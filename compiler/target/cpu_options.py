"""The options of a CPU target, read from its text."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import NamedTuple

from compiler.executor.cores import available_cores
from compiler.executor.machine import architecture
from compiler.target.cpu_features import changed_features
from compiler.target.cpus import CPUS, USUAL_CACHES, Arch
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features, reported_cpu
from compiler.target.target import COLD_OPTION, with_own_kind

# A chosen bound: the thread pool reserves memory for as many (`thread_pool.MAX_WORKERS`).
MAX_CORES = 1024
# Architectures with an instruction that evicts a cache line, and that Linux permits to programs.
_EVICTS = ("x86_64", "aarch64")
# By the first part of a triple, in any of its usual spellings.
_ARCHS: dict[str, Arch] = {
    **dict.fromkeys(("x86_64", "amd64"), "x86_64"),
    **dict.fromkeys(("aarch64", "arm64"), "aarch64"),
    **dict.fromkeys(("armv7", "armv7a", "armv7l", "armv7-a", "arm"), "armv7l"),
    "riscv64": "riscv64",
}
# The oldest CPU of each architecture, for a triple without a CPU.
_OLDEST: dict[Arch, str] = {
    "x86_64": "x86-64",
    "aarch64": "cortex-a53",
    "armv7l": "cortex-a9",
    "riscv64": "spacemit-x60",
}
_ENVIRONMENTS = ("gnu", "gnueabi", "gnueabihf", "musl", "musleabi", "musleabihf", "android")
_OPTION = re.compile(r"--?(mcpu|mattr|mtriple|target|num-cores|cache)=(.+)")


class CpuOptions(NamedTuple):
    """The options of a CPU target.

    Attributes:
        cpu: LLVM's name of the CPU.
        features: LLVM's text of the features that code may use.
        feature_changes: How they differ from those of the CPU; empty if they do not.
    """

    cpu: str
    features: str
    feature_changes: str
    num_cores: int
    is_cold: bool


@lru_cache(maxsize=256)
def parse_options(text: str) -> CpuOptions:
    """Read the text of a target.

    Raises:
        TargetError: If it is not of a CPU, or names an unknown option, CPU or feature.
    """
    kind, *words = with_own_kind(text).split() or [""]
    if kind != "cpu":
        raise TargetError(f"a CPU target begins with 'cpu', not {kind!r}: {text!r}")
    options = dict(_option(word, text) for word in words)
    cpu = _cpu(options.get("mcpu"), options.get("mtriple"), text)
    arch = arch_of(cpu)
    cores = min(available_cores(), MAX_CORES)
    if "num-cores" in options:
        cores = _num_cores(options["num-cores"], text)
    is_cold = _is_cold(options.get("cache", "warm"), arch, text)
    is_detected = cpu == host_cpu() and reported_cpu() is None
    base = host_features() if is_detected else CPUS[cpu].features
    features, changes = changed_features(arch, base, options.get("mattr", ""))
    return CpuOptions(cpu, features, changes, cores, is_cold)


def arch_of(cpu: str) -> Arch:
    """Return the architecture of a CPU."""
    if cpu in CPUS:
        return CPUS[cpu].arch
    machine = architecture()
    assert machine in USUAL_CACHES, f"hosts of the architecture {machine} are not supported"
    return machine


def _option(word: str, text: str) -> tuple[str, str]:
    match = _OPTION.fullmatch(word)
    if match is None:
        raise TargetError(
            f"unknown option {word!r} in target {text!r}: expected -mcpu=NAME, -mattr=+FEATURE,"
            f" -mtriple=TRIPLE, -num-cores=N or {COLD_OPTION}"
        )
    name, value = match.groups()
    return ("mtriple" if name == "target" else name), value


def _cpu(name: str | None, triple: str | None, text: str) -> str:
    """Return the CPU that a text names, by its name, its triple or both."""
    arch = None if triple is None else _arch_of_triple(triple, text)
    if name is None:
        return host_cpu() if arch is None else _OLDEST[arch]
    cpu = _known_cpu(name, text)
    if arch not in (None, arch_of(cpu)):
        raise TargetError(
            f"target {text!r} contradicts itself: {cpu} is of the architecture {arch_of(cpu)}, and"
            f" {triple} of {arch}"
        )
    return cpu


def _arch_of_triple(triple: str, text: str) -> Arch:
    """Return the architecture of a triple: of Linux, with floats in registers."""
    first, *others = triple.lower().split("-")
    arch = _ARCHS.get(first)
    environment = others[-1] if others else "gnu"
    is_linux = not others or "linux" in others
    is_known = environment == "linux" or environment in _ENVIRONMENTS
    if arch is None or not is_linux or not is_known:
        raise TargetError(
            f"unknown triple {triple!r} in target {text!r}: expected one of Linux, such as"
            " aarch64-linux-gnu, armv7-linux-gnueabihf, riscv64-linux-gnu or x86_64-linux-gnu"
        )
    if arch == "armv7l" and not environment.endswith("hf"):
        raise TargetError(
            f"triple {triple!r} in target {text!r} passes floats in integer registers, which is"
            " not supported: expected armv7-linux-gnueabihf"
        )
    return arch


def _is_cold(state: str, arch: Arch, text: str) -> bool:
    if state not in ("cold", "warm"):
        raise TargetError(
            f"bad state of caches {state!r} in target {text!r}: expected cold or warm"
        )
    if state == "cold" and arch not in _EVICTS:
        raise TargetError(
            f"{COLD_OPTION} in target {text!r}: programs on {arch} have no instruction that evicts"
            " a cache line"
        )
    return state == "cold"


def _num_cores(number: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", number) or not 1 <= int(number) <= MAX_CORES:
        raise TargetError(
            f"bad number of cores {number!r} in target {text!r}: expected 1 to {MAX_CORES}"
        )
    return int(number)


def _known_cpu(name: str, text: str) -> str:
    names = {*CPUS, host_cpu()}
    if name == "native":
        return host_cpu()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(names))}"
        raise TargetError(f"unknown CPU {name!r} in target {text!r}: {hint}")
    return name
