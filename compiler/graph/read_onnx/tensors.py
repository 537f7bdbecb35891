"""Tensors that a model holds: from bytes to arrays."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, numpy_helper

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.limits import MAX_RANK, MAX_TENSOR_BYTES
from compiler.ir.core.dtypes import size_bytes


class TensorReader:
    """Reads the elements of tensors."""

    def array(self, tensor: TensorProto) -> Array:
        """Return the elements of a tensor.

        Raises:
            ModelError: If the data type is not supported, the tensor is too large, or its data
                does not fit its shape.
        """
        shape, dtype = tuple(tensor.dims), dtype_of(tensor.data_type)
        named = f"tensor {tensor.name!r} of shape {shape}"
        if len(shape) > MAX_RANK or any(extent < 0 for extent in shape):
            raise ModelError(f"{named}: expected at most {MAX_RANK} extents of 0 or more")
        if math.prod(shape) * size_bytes(dtype) > MAX_TENSOR_BYTES:
            raise ModelError(f"{named} has more than {MAX_TENSOR_BYTES} bytes")
        try:
            return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)
        except (ValueError, TypeError) as error:
            raise ModelError(f"{named} holds data that does not fit: {error}") from None
