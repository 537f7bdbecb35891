"""What this machine can run: its architecture, and the flags of its CPU as Linux lists them."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
from collections.abc import Iterable
from functools import cache

from .error import PackageError

TILE_FLAG = "amx_tile"
# asm/unistd_64.h, asm/prctl.h and asm/fpu/types.h of Linux 5.16
_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
# A RISC-V CPU offers the length of its vectors, and all shorter ones.
_VECTOR_BITS = (128, 256, 512, 1024, 2048)
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


def architecture() -> str:
    """Return the architecture of this process by Linux's name: a kernel of 64 bits runs both."""
    machine = platform.machine()
    if _POINTER_BYTES == 4:
        return {"aarch64": "armv7l", "armv8l": "armv7l", "x86_64": "i686"}.get(machine, machine)
    return machine


def is_emulated(proc: str = "/proc") -> bool:
    """Return whether QEMU's user mode runs this process: its times say nothing of the CPU.

    QEMU answers for `self/exe`, and Linux for `thread-self/exe`: that is the emulator. The name of
    the process is that of the emulator too, except if Linux itself starts it (`binfmt_misc`).

    Args:
        proc: Where Linux describes processes.
    """
    try:
        with open(f"{proc}/self/comm", "rb") as file:
            if file.read(5) == b"qemu-":
                return True
        return os.readlink(f"{proc}/self/exe") != os.readlink(f"{proc}/thread-self/exe")
    except OSError:
        return False


def linux_name(arch: str) -> str:
    """Return Linux's name of an architecture that LLVM names, as the first part of a triple."""
    return "armv7l" if arch == "armv7" else arch


def check_machine(name: str, arch: str, flags: Iterable[str]) -> None:
    """Refuse code that this machine cannot run: an illegal instruction would kill the process.

    Args:
        name: The name of the package, for errors.
        arch: The architecture by the name of Linux or of LLVM.
        flags: The flags of `/proc/cpuinfo` that the code needs.

    Raises:
        PackageError: If the architecture is another one, or flags are missing.
    """
    if linux_name(arch) != architecture():
        raise PackageError(f"{name} was built for {arch}: this machine is {architecture()}")
    missing = sorted(set(flags) - cpu_flags())
    if missing:
        raise PackageError(
            f"{name} was built for a CPU with {', '.join(missing)}: this CPU has none of that;"
            " compile the model for this CPU"
        )
    if TILE_FLAG in flags:
        try:
            request_tiles()
        except OSError as error:
            raise PackageError(f"{name} needs tile registers (AMX): {error.strerror}") from error


@cache
def cpu_flags() -> frozenset[str]:
    """Return the flags of the CPU, such as `avx2`, `asimddp` or, of RISC-V, `v` and `zfh`."""
    return device_flags(architecture(), _cpuinfo(), vector_bits())


def listed_features() -> str:
    """Return the line of `/proc/cpuinfo` that lists the features of this CPU; empty without one."""
    line = re.search(r"^(?:flags|Features|isa)\b.*$", _cpuinfo(), re.MULTILINE)
    return line[0] if line else ""


def device_flags(arch: str, cpuinfo: str, vector_bits: int = 0) -> frozenset[str]:
    """Return the flags of a CPU, by the text of its `/proc/cpuinfo`.

    Args:
        arch: The architecture of its processes.
        cpuinfo: The text, or the line of it that lists features.
        vector_bits: Of RISC-V, the length of its vector registers.
    """
    flags = _listed(cpuinfo)
    if arch == "armv7l" and "asimd" in flags:  # a CPU of 64 bits that runs such code
        return flags | {"half", "idiva", "neon", "vfpv3", "vfpv4"}
    return flags | {f"zvl{bits}b" for bits in _VECTOR_BITS if bits <= vector_bits}


def _cpuinfo() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        return file.read()


def _listed(cpuinfo: str) -> frozenset[str]:
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if line:
        return frozenset(line[1].split())
    isa = re.search(r"^isa\s*: *rv(?:32|64)([a-z]+)((?:_[a-z0-9]+)*)", cpuinfo, re.MULTILINE)
    return frozenset([*isa[1], *isa[2].split("_")[1:]]) if isa else frozenset()


@cache
def vector_bits() -> int:
    """Return the length of the vector registers of a RISC-V CPU, which no file of Linux has, or 0.

    Other architectures name theirs by features.
    """
    if architecture() != "riscv64" or "v" not in _listed(_cpuinfo()):
        return 0
    code = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    code[:8] = bytes.fromhex("732520c2 67800000")  # csrr a0, vlenb; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    libc = ctypes.CDLL(None, use_errno=True)
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), executable):
        return 0
    return 8 * int(ctypes.CFUNCTYPE(ctypes.c_long)(address)())


@cache
def request_tiles() -> None:
    """Request the tile registers (AMX) for all threads of this process; once is enough.

    Linux gives them to a process only on request: they enlarge what the kernel saves of each thread
    by 8 KiB. Without the permission, the first instruction for them ends the process.

    Raises:
        OSError: If Linux refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
