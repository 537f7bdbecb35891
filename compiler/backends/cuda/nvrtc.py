"""Compile CUDA C++ by NVRTC, NVIDIA's compiler as a library. It needs neither a GPU nor a driver.

The library comes with the wheel `nvidia-cuda-nvrtc` (extra `[cuda]`), or with a CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compiler.backends.error import BuildError
from compiler.runtime.resources import KernelResources

# The major version of CUDA. A cubin of NVRTC 13.x runs with each driver of CUDA 13.
_MAJOR = 13
OPTIONS = ("--std=c++17", "--generate-line-info", "--ptxas-options=-v")


class NvrtcMissingError(BuildError):
    """This host has no NVRTC."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"CUDA kernels are compiled by NVRTC, which this host lacks ({reason}): "
            "pip install 'loopwright[cuda]'",
            "codegen",
        )


@dataclass(frozen=True, slots=True)
class CompiledSource:
    """The outcome of a compilation.

    Attributes:
        cubin: The machine code, as an ELF file.
        ptx: The code of the virtual machine; `.loc` directives name lines of the source.
        resources: By kernel; shared memory counts if it is declared with a static size.
    """

    cubin: bytes
    ptx: str
    resources: dict[str, KernelResources]


def compile_cuda(text: str, arch: str) -> CompiledSource:
    """Compile CUDA C++ for an architecture such as `sm_90a`.

    Raises:
        NvrtcMissingError: If this host has no NVRTC.
        BuildError: If the compiler rejects the source; with its messages.
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"/kernel.cu", 0, 0, 0))
    try:
        options = [option.encode() for option in (f"--gpu-architecture={arch}", *OPTIONS)]
        array = (ctypes.c_char_p * len(options))(*options)
        failed = library.nvrtcCompileProgram(program, len(options), array)
        log = _text(program, "ProgramLog")
        if failed:
            raise BuildError(f"NVRTC rejects the source for {arch}:\n{log}", "codegen")
        return CompiledSource(_bytes(program, "CUBIN"), _text(program, "PTX"), _resources(log))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def nvrtc_version() -> tuple[int, int]:
    """Return the version of NVRTC.

    Raises:
        NvrtcMissingError: If this host has none.
    """
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def require_nvrtc() -> None:
    """Require NVRTC on this host; the library of its wheel, 100 MB, is not loaded for that.

    Raises:
        NvrtcMissingError: If this host has none.
    """
    if nvrtc_release() is None:
        _library()


@cache
def nvrtc_release() -> str | None:
    """Return the release of NVRTC's wheel, such as 13.0.88, without loading the library.

    It is None if the wheel is not installed.
    """
    if _wheel_folder() is None:
        return None
    return importlib.metadata.version("nvidia-cuda-nvrtc")


@cache
def _library() -> ctypes.CDLL:
    folder = _wheel_folder()
    if folder is None:
        name = ctypes.util.find_library("nvrtc") or f"libnvrtc.so.{_MAJOR}"
    else:
        # NVRTC looks for its builtins by name only, so they are loaded first.
        for builtins in folder.glob(f"libnvrtc-builtins.so.{_MAJOR}.*"):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        name = str(folder / f"libnvrtc.so.{_MAJOR}")
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise NvrtcMissingError(str(error)) from error


def _wheel_folder() -> Path | None:
    """Return the folder of the wheel's libraries; None if the wheel is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / f"cu{_MAJOR}" / "lib"
        if (folder / f"libnvrtc.so.{_MAJOR}").is_file():
            return folder
    return None


def _check(status: int) -> None:
    if status:
        raise BuildError(f"NVRTC fails with status {status}", "codegen")


def _bytes(program: ctypes.c_void_p, noun: str) -> bytes:
    library = _library()
    size = ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{noun}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{noun}")(program, content))
    return content.raw


def _text(program: ctypes.c_void_p, noun: str) -> str:
    return _bytes(program, noun).rstrip(b"\0").decode(errors="replace")


def _resources(log: str) -> dict[str, KernelResources]:
    """Read the reports of the assembler, one a kernel."""
    resources: dict[str, KernelResources] = {}
    for part in log.split("Compiling entry function ")[1:]:
        name = part.partition("'")[2].partition("'")[0]
        resources[name] = KernelResources(
            _number(r"Used (\d+) registers", part),
            _number(r"(\d+) bytes stack frame", part),
            _number(r"(\d+) bytes spill stores", part),
            _number(r"(\d+) bytes smem", part),
        )
    return resources


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0
