"""Artifacts: a compiled kernel with its calling convention, as one file.

The file is a zip of `meta.json` and `kernel.o`, which holds the code in the form of its backend. A
kernel with constant parameters also has `packer.zip`, the artifact that prepares them; one with
threads has `pool.o`, the pool of threads.
Reading an artifact runs nothing. Loading it into a `Module` runs machine code: load only artifacts
from sources that you trust.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .call_sizes import CallSizes
from .dtypes import numpy_dtype
from .error import ArtifactError
from .extents import Extent
from .params import Param, Symbol, describe_kernel

FORMAT_VERSION = 2
PACKER_FORMAT_VERSION = 3
"""The format of an artifact with a packer: versions that would ignore it refuse the file."""
SYMBOLIC_FORMAT_VERSION = 4
"""The format of an artifact that takes numbers, or arrays of symbolic extents."""
_TEXTS = ("name", "target", "triple", "features", "toolchain", "backend", "dispatcher")
SEVERAL = "kernels.json"
"""The entry that only a file of several kernels has."""
_VERSIONS = (FORMAT_VERSION, PACKER_FORMAT_VERSION, SYMBOLIC_FORMAT_VERSION)
# A limit against files that would unpack to more memory than the process has.
LIMIT_BYTES = 64 << 20
_POOL = "pool.o"
_PACKER = "packer.zip"
# Artifacts of versions with a single backend do not name it.
_OLDEST_BACKEND = "cpu"

# The standard library raises these for bytes that are no zip file or no JSON of this format.
MALFORMED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    RuntimeError,  # an encrypted entry, a method of compression that is not supported, deep JSON
    TypeError,
    ValueError,
)


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

    def __repr__(self) -> str:
        size = f"{len(self.code)} bytes of code"
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
        meta = asdict(replace(self, packer=None))
        del meta["code"], meta["packer"], meta["pool"]
        meta["params"] = [param.to_json() for param in self.params]
        for name in ("symbols", "dispatcher"):
            if not meta[name]:
                del meta[name]  # omitted, so that older versions can read the file
        if self.backend == _OLDEST_BACKEND:
            del meta["backend"]  # omitted, so that older versions can read the file
        meta["sha256"] = hashlib.sha256(self.code).hexdigest()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            version = FORMAT_VERSION if self.packer is None else PACKER_FORMAT_VERSION
            version = SYMBOLIC_FORMAT_VERSION if self.is_symbolic else version
            write_entry(file, "meta.json", json.dumps({"format": version, **meta}).encode())
            write_entry(file, "kernel.o", self.code)
            if self.packer is not None:
                write_entry(file, _PACKER, self.packer.to_bytes())
            if self.pool:
                write_entry(file, _POOL, self.pool)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Artifact:
        """Parse the bytes of `to_bytes`.

        Raises:
            ArtifactError: If the bytes are not an artifact, or have another format version.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                if sum(entry.file_size for entry in file.infolist()) > LIMIT_BYTES:
                    raise ArtifactError(f"the artifact unpacks to more than {LIMIT_BYTES} bytes")
                if SEVERAL in file.namelist():
                    raise ArtifactError("the file holds several kernels: use load_kernels")
                meta = json.loads(file.read("meta.json"))
                code = file.read("kernel.o")
                packer = None
                if _PACKER in file.namelist() and _has_packer(meta):
                    packer = cls.from_bytes(file.read(_PACKER))
                pool = file.read(_POOL) if _POOL in file.namelist() else b""
            return replace(cls._from_meta(meta, code, packer), pool=pool)
        except ArtifactError:
            raise
        except MALFORMED as error:
            raise ArtifactError(f"not a Loopwright artifact: {error}") from error

    @classmethod
    def _from_meta(cls, meta: dict[str, Any], code: bytes, packer: Artifact | None) -> Artifact:
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
        params = []
        for param in meta.pop("params"):
            try:
                numpy_dtype(param["dtype"])
            except ValueError as error:
                raise ArtifactError(f"the artifact has a parameter of {error}") from error
            params.append(Param.from_json(param))
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
        artifact = cls(**meta, params=tuple(params), code=code, packer=packer, symbols=symbols)
        artifact._check_packer()
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

    def save(self, path: str | Path) -> None:
        """Write the artifact to a file."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Artifact:
        """Read an artifact from a file.

        Raises:
            ArtifactError: If the file is not an artifact.
            OSError: If it can't be read.
        """
        return cls.from_bytes(Path(path).read_bytes())


def _has_packer(meta: object) -> bool:
    return isinstance(meta, dict) and meta.get("format") in _VERSIONS[1:]


def write_entry(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Write an entry with a fixed date, so that equal kernels give equal files."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, content)
