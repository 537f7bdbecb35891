"""Libraries that compute the same on the GPU: cuBLAS, PyTorch eager and compiled, Triton."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.libraries.library import LibraryCall
from workers.libraries.load import load_library


def _library(name: str) -> Callable[[str, Sequence[Any]], LibraryCall]:
    def prepare(spec: str, inputs: Sequence[Any]) -> LibraryCall:
        library = load_library(name)
        library.start(1)
        return library.prepare(spec, inputs)

    return prepare


def _compiled(spec: str, inputs: Sequence[Any]) -> LibraryCall:
    """Return the call of what `torch.compile` makes of PyTorch's function, in its best mode."""
    load_library("torch-cuda").start(1)
    # Optional, and installed with the GPU's libraries only.
    import torch  # noqa: PLC0415

    from workers.libraries.torch import prepare_tensors  # noqa: PLC0415
    from workers.libraries.torch_cuda import on_stream, tensor_of  # noqa: PLC0415

    call = prepare_tensors(spec, [tensor_of(array) for array in inputs])
    # Without graphs: both are timed on the same stream, by the same events.
    compiled = torch.compile(call.run, dynamic=False, mode="max-autotune-no-cudagraphs")
    return on_stream(compiled, call.result)


def _triton(spec: str, inputs: Sequence[Any]) -> LibraryCall:
    from benchmarks.gpu.triton_product import prepare  # noqa: PLC0415

    return prepare(spec, inputs)


PEERS: Mapping[str, Callable[[str, Sequence[Any]], LibraryCall]] = {
    "cublas": _library("cublas"),
    "torch": _library("torch-cuda"),
    "torch.compile": _compiled,
    "triton": _triton,
}
"""By name, a function that prepares an operator on arrays of the GPU; it raises if it can't."""
