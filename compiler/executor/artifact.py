"""Artifacts: a compiled kernel with its calling convention, as one file.

The file is a zip of `meta.json` and `kernel.o`, which holds the code in the form of its backend. A
kernel with constant parameters also has `packer.zip`, the artifact that prepares them; one with
threads has `pool.o`, the pool of threads. A kernel that calls registered functions has
`part0.zip`, `part1.zip`, ..., the artifacts of its native code, and no code of its own.
Reading an artifact runs nothing. Loading it into a `Module` runs machine code: load only artifacts
from sources that you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .call_sizes import CallSizes
from .dtypes import numpy_dtype
from .error import ArtifactError
from .extents import Extent
from .functions.call_plan import CallPlan, KernelStep
from .params import Param, Symbol, describe_kernel
from .zip_reader import read_zip

FORMAT_VERSION = 2
PACKER_FORMAT_VERSION = 3
"""The format of an artifact with a packer: versions that would ignore it refuse the file."""
SYMBOLIC_FORMAT_VERSION = 4
"""The format of an artifact that takes numbers, or arrays of symbolic extents."""
CALLING_FORMAT_VERSION = 5
"""The format of an artifact that calls registered functions."""
_TEXTS = ("name", "target", "triple", "features", "toolchain", "backend", "dispatcher")
SEVERAL = "kernels.json"
"""The entry that only a file of several kernels has."""
_VERSIONS = (FORMAT_VERSION, PACKER_FORMAT_VERSION, SYMBOLIC_FORMAT_VERSION, CALLING_FORMAT_VERSION)
# A limit against files that would unpack to more memory than the process has.
LIMIT_BYTES = 64 << 20
# The first entry of a package of a model, and the place of its name in a zip.
_MODEL, _FIRST_NAME = b"manifest.json", 30
_POOL = "pool.o"
_SUFFIXES_OF_C = (".o", ".h", ".so")
# TVM's programs write `.lib` and `.tar`.
_SUFFIXES_OF_ARTIFACTS = (".lwk", "", ".lib", ".tar")
_PACKER = "packer.zip"
# Artifacts of versions with a single backend do not name it.
_OLDEST_BACKEND = "cpu"

# Raised for bytes that are no zip file or no JSON of this format; the third one for deep JSON.
MALFORMED = (LookupError, TypeError, RecursionError, ValueError)


@dataclass(frozen=True, slots=True, repr=False)
class Artifact:
    """A kernel's code and calling convention.

    Attributes:
        triple, features: The machine that the code requires, in LLVM's spelling; empty for other
            backends.
        workspace_bytes: The size of the workspace for `num_threads` threads, a number or a formula.
        num_threads: The most threads that the kernel can use; 1 without a parallel loop.
        code: For a CPU an object file; otherwise the form that the backend loads.
        backend: The kind of the backend that generated the code, and loads it.
        packer: The kernel that runs once, when a module is loaded with its constants. It takes the
            constants, and writes packed copies of them. The parameters of this kernel end with
            those constants that it reads directly, then the copies.
        pool: The object code of a pool of threads, for a process without the compiler; empty for
            other backends, for kernels without threads, and in files of older versions.
        symbols: The symbolic extents. Their values follow the parameters in a call.
        dispatcher: The text of the function that calls others, of a module of several functions.
        plan: The steps of a kernel that calls registered functions; None for one that does not.
        parts: The native code of a plan.
    """

    name: str
    target: str
    triple: str
    features: str
    toolchain: str
    params: tuple[Param, ...]
    workspace_bytes: Extent
    num_threads: int
    code: bytes
    backend: str = _OLDEST_BACKEND
    packer: Artifact | None = None
    pool: bytes = b""
    symbols: tuple[Symbol, ...] = ()
    dispatcher: str = ""
    plan: CallPlan | None = None
    parts: tuple[Artifact, ...] = ()

    def __repr__(self) -> str:
        size = f"{sum(len(part.code) for part in (self, *self.parts))} bytes of code"
        if self.functions:
            size += f", calls {', '.join(self.functions)}"
        return f"<Artifact {describe_kernel(self.name, self.arguments)} for {self.target}: {size}>"

    @property
    def constants(self) -> tuple[Param, ...]:
        """Return the constant parameters, which are passed once, when a module is loaded."""
        params = () if self.packer is None else self.packer.params
        return tuple(param for param in params if not param.is_output)

    @property
    def packed_copies(self) -> tuple[Param, ...]:
        """Return the copies of constants that the packer writes."""
        params = () if self.packer is None else self.packer.params
        return tuple(param for param in params if param.is_output)

    @property
    def arguments(self) -> tuple[Param, ...]:
        """Return the parameters that are passed in each call."""
        constants = {param.name for param in self.constants}
        before_copies = self.params[: len(self.params) - len(self.packed_copies)]
        return tuple(param for param in before_copies if param.name not in constants)

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the registered functions that it calls: loading requires them."""
        return () if self.plan is None else self.plan.functions

    @property
    def is_symbolic(self) -> bool:
        """Return whether it takes numbers, or arrays of symbolic extents."""
        return bool(self.symbols) or any(param.is_scalar for param in self.params)

    def call_sizes(self) -> CallSizes:
        """Return what finds and checks the sizes of calls.

        Raises:
            ValueError: If a formula is wrong.
        """
        return CallSizes(self.name, self.arguments, self.symbols, self.workspace_bytes)

    def to_bytes(self) -> bytes:
        """Return the artifact as the bytes of a file."""
        meta = asdict(replace(self, packer=None, parts=()))
        for name in ("code", "packer", "pool", "parts", *(("plan",) if self.plan is None else ())):
            del meta[name]
        meta["params"] = [param.to_json() for param in self.params]
        for name in ("symbols", "dispatcher"):
            if not meta[name]:
                del meta[name]  # omitted, so that older versions can read the file
        if self.backend == _OLDEST_BACKEND:
            del meta["backend"]  # omitted, so that older versions can read the file
        meta["sha256"] = hashlib.sha256(self.code).hexdigest()
        version = FORMAT_VERSION if self.packer is None else PACKER_FORMAT_VERSION
        version = SYMBOLIC_FORMAT_VERSION if self.is_symbolic else version
        version = version if self.plan is None else CALLING_FORMAT_VERSION
        files = {"meta.json": json.dumps({"format": version, **meta}).encode()}
        files["kernel.o"] = self.code
        if self.packer is not None:
            files[_PACKER] = self.packer.to_bytes()
        if self.pool:
            files[_POOL] = self.pool
        files.update({f"part{i}.zip": part.to_bytes() for i, part in enumerate(self.parts)})
        return write_zip(files)

    @classmethod
    def from_bytes(cls, content: bytes) -> Artifact:
        """Parse the bytes of `to_bytes`.

        Raises:
            ArtifactError: If the bytes are not an artifact, or have another format version.
        """
        if content.startswith(_MODEL, _FIRST_NAME):
            # First, because a model may have more bytes than a kernel.
            raise ArtifactError("the file holds a whole model: use load")
        try:
            files = read_zip(content, LIMIT_BYTES)
            if SEVERAL in files:
                raise ArtifactError("the file holds several kernels: use load_kernels")
            meta = json.loads(files["meta.json"])
            packer = None
            if _PACKER in files and _has_packer(meta):
                packer = cls.from_bytes(files[_PACKER])
            parts: list[Artifact] = []
            while _has_plan(meta) and (part := files.get(f"part{len(parts)}.zip")) is not None:
                parts.append(cls.from_bytes(part))
            artifact = cls._from_meta(meta, files["kernel.o"], packer, tuple(parts))
            return replace(artifact, pool=files.get(_POOL, b""))
        except ArtifactError:
            raise
        except MALFORMED as error:
            raise ArtifactError(f"not a Loopwright artifact: {error}") from error

    @classmethod
    def _from_meta(
        cls,
        meta: dict[str, Any],
        code: bytes,
        packer: Artifact | None,
        parts: tuple[Artifact, ...],
    ) -> Artifact:
        if not isinstance(meta, dict):
            raise TypeError("its meta.json holds no object")
        version = meta.pop("format", None)
        if version not in _VERSIONS:
            raise ArtifactError(
                f"the artifact has format {version}:"
                f" this version reads {_VERSIONS[0]} to {_VERSIONS[-1]}"
            )
        # LLVM's linker crashes on damaged objects, so the checksum comes first.
        if meta.pop("sha256") != hashlib.sha256(code).hexdigest():
            raise ArtifactError("the artifact is damaged: its code has another checksum")
        params = [_param(param) for param in meta.pop("params")]
        meta.setdefault("backend", _OLDEST_BACKEND)
        meta.setdefault("dispatcher", "")
        for field in _TEXTS:
            if not isinstance(meta[field], str):
                raise TypeError(f"its {field} is {meta[field]!r}")
        symbols = tuple(Symbol(**symbol) for symbol in meta.pop("symbols", ()))
        size = meta["workspace_bytes"]
        if not (isinstance(size, int) and size >= 0) and not (symbols and isinstance(size, str)):
            raise TypeError(f"its workspace has {size!r} bytes")
        threads = meta["num_threads"]
        if not isinstance(threads, int) or threads < 1:
            raise TypeError(f"it uses {threads!r} threads")
        plan = meta.pop("plan", None)
        if plan is not None:
            meta["plan"] = CallPlan.from_json(plan, len(params), len(parts))
        artifact = cls(
            **meta, params=tuple(params), code=code, packer=packer, symbols=symbols, parts=parts
        )
        artifact._check_packer()
        artifact._check_parts()
        artifact.call_sizes()  # refuses formulas of unknown names
        return artifact

    def _check_packer(self) -> None:
        """Refuse a packer that does not prepare what the kernel takes.

        Raises:
            ValueError: If it does not.
        """
        copies = tuple(replace(param, is_output=False) for param in self.packed_copies)
        first = len(self.params) - len(copies)
        names = {param.name for param in self.params[:first]}
        direct = tuple(param for param in self.constants if param.name in names)
        is_nested = self.packer is not None and self.packer.packer is not None
        if is_nested or self.params[first - len(direct) :] != direct + copies:
            raise ValueError("its packer does not prepare the parameters of its kernel")

    def _check_parts(self) -> None:
        """Refuse parts that do not take the arrays that the plan passes.

        Raises:
            ValueError: If they do not.
        """
        if self.plan is None:
            return
        if (
            self.packer is not None
            or self.is_symbolic
            or any(part.functions for part in self.parts)
        ):
            raise ValueError("a kernel with a plan has no packer, symbolic extents or nested plans")
        for step in self.plan.steps:
            if not isinstance(step, KernelStep):
                continue
            part = self.parts[step.part]
            taken = [(param.shape, param.dtype) for param in part.params]
            passed = [self.plan.buffers[number] for number in step.buffers]
            room = int(self.workspace_bytes) - self.plan.workspace_bytes
            if taken != [(b.shape, b.dtype) for b in passed] or int(part.workspace_bytes) > room:
                raise ValueError("its plan does not fit its native code")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the kernel to a file; its suffix says in which form.

        `x.o` is an object file for programs in C, `x.h` its header, and `x.so` a shared library, if
        a linker for its architecture is installed; `docs/cross_compiling.md` has their interface.
        `x.lwk`, a name without a suffix, and TVM's `x.lib` and `x.tar` are the artifact. `load`
        reads objects and libraries too.

        Raises:
            ArtifactError: If the suffix is another one, a file for C was requested of a kernel for
                another kind of device, or there is no linker for a library.
            OSError: If it can't be written.
        """
        check_suffix(path)
        if os.path.splitext(path)[1] in _SUFFIXES_OF_C:
            # Imported on use: a process that only loads kernels calls no linker.
            from .c_files.export import save_for_c  # noqa: PLC0415

            save_for_c(self, os.fspath(path))
            return
        with open(path, "wb") as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Artifact:
        """Read an artifact from a file.

        Raises:
            ArtifactError: If the file is not an artifact.
            OSError: If it can't be read.
        """
        with open(path, "rb") as file:
            return cls.from_bytes(file.read())


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file that `Artifact.save` does not write.

    Raises:
        ArtifactError: If its suffix says no form.
    """
    suffix = os.path.splitext(path)[1]
    if suffix not in _SUFFIXES_OF_C + _SUFFIXES_OF_ARTIFACTS:
        raise ArtifactError(
            f"a kernel can't be written as {suffix} ({os.fspath(path)!r}): expected .lwk for"
            f" load_kernel, or {', '.join(_SUFFIXES_OF_C)} for programs in C"
        )


def _param(fields: Mapping[str, Any]) -> Param:
    try:
        numpy_dtype(fields["dtype"])
    except ValueError as error:
        raise ArtifactError(f"the artifact has a parameter of {error}") from error
    return Param.from_json(fields)


def _has_plan(meta: object) -> bool:
    return isinstance(meta, dict) and meta.get("format") == CALLING_FORMAT_VERSION


def _has_packer(meta: object) -> bool:
    return isinstance(meta, dict) and meta.get("format") in _VERSIONS[1:]


def write_zip(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by their names; equal files give equal bytes."""
    # Imported on use: reading needs less of it, and it imports a lot.
    from io import BytesIO  # noqa: PLC0415
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo  # noqa: PLC0415

    buffer = BytesIO()
    with ZipFile(buffer, "w") as file:
        for name, content in files.items():
            entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = ZIP_DEFLATED
            file.writestr(entry, content)
    return buffer.getvalue()
