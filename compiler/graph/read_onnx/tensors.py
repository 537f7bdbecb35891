"""Tensors that a model holds: from bytes, or files beside the model, to arrays."""

from __future__ import annotations

import math
import stat
from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.limits import MAX_ELEMENTS, MAX_RANK
from compiler.ir.core.dtypes import DType, size_bytes


class TensorReader:
    """Reads the elements of tensors; external data is mapped into memory, not read.

    Attributes:
        num_bytes: The bytes of all tensors that were read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Read tensors of a model.

        Args:
            folder: The folder of the model, which alone may hold external data; None refuses all.
        """
        self._folder = folder
        self.num_bytes = 0

    def array(self, tensor: TensorProto) -> Array:
        """Return the elements of a tensor.

        Raises:
            ModelError: If the data type is not supported, the tensor is too large, or its data
                does not fit its shape.
        """
        named = f"tensor {tensor.name!r}"
        shape, dtype = tuple(tensor.dims), dtype_of(tensor.data_type)
        check_shape(shape, named)
        if tensor.data_location == TensorProto.EXTERNAL:
            array = self._external(tensor, shape, dtype)
        else:
            array = _internal(tensor, shape, named)
        self.num_bytes += array.nbytes
        return array

    def _external(self, tensor: TensorProto, shape: tuple[int, ...], dtype: DType) -> Array:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        named = f"tensor {tensor.name!r}"
        try:
            offset = int(entries.get("offset", 0))
            num_bytes = math.prod(shape) * size_bytes(dtype)
            if int(entries.get("length", num_bytes)) != num_bytes or offset < 0:
                raise ValueError(f"{entries}: expected a length of {num_bytes}")
            path = self._path_within(entries.get("location", ""))
            if num_bytes == 0:
                return np.empty(shape, dtype)
            mapped = np.memmap(path, np.uint8, mode="r", offset=offset, shape=(num_bytes,))
        except (OSError, ValueError, OverflowError) as error:
            raise ModelError(f"{named} has external data that can't be read: {error}") from None
        return np.asarray(mapped).view(dtype).reshape(shape)

    def _path_within(self, location: str) -> Path:
        """Return the path of external data, which lies in the folder of the model.

        Symbolic links are followed first, so that none leads out of the folder.
        """
        if self._folder is None:
            raise ValueError("the model was not read from a file")
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not location or not path.is_relative_to(folder):
            raise ValueError(f"{location!r} is not in the folder of the model")
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{location!r} is not a regular file")
        return path


def check_shape(shape: tuple[int, ...], named: str) -> None:
    """Refuse a shape that is too large.

    Raises:
        ModelError: If there are too many dimensions or elements, or an extent is negative.
    """
    if len(shape) > MAX_RANK or any(extent < 0 for extent in shape):
        raise ModelError(
            f"{named} has the shape {shape}: expected at most {MAX_RANK} extents of 0 or more"
        )
    if math.prod(shape) > MAX_ELEMENTS:
        raise ModelError(f"{named} has the shape {shape}: expected at most {MAX_ELEMENTS} elements")


def _internal(tensor: TensorProto, shape: tuple[int, ...], named: str) -> Array:
    try:
        return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"{named} of shape {shape} holds other data: {error}") from None
