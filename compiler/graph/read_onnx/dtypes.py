"""The data types of ONNX, and those of graphs."""

from __future__ import annotations

from onnx import TensorProto

from compiler.graph.error import ModelError
from compiler.ir.core.dtypes import DType

_DTYPES: dict[int, DType] = {
    TensorProto.BOOL: "bool",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
}


def dtype_of(elem_type: int) -> DType:
    """Return the data type of a number of ONNX's enumeration.

    Raises:
        ModelError: If there is no such type, or graphs have none for it.
    """
    if elem_type not in _DTYPES:
        raise ModelError(f"the data type {name_of(elem_type)} is not supported")
    return _DTYPES[elem_type]


def name_of(elem_type: int) -> str:
    """Return the name of a type in ONNX, or its number if ONNX has no such type."""
    if elem_type not in TensorProto.DataType.values():
        return str(elem_type)
    return str(TensorProto.DataType.Name(elem_type))


def elem_type_of(dtype: DType) -> int:
    """Return the number of a data type in ONNX's enumeration."""
    return next(elem_type for elem_type, named in _DTYPES.items() if named == dtype)


def type_name(dtype: DType) -> str:
    """Return the name of the type of a tensor in schemas, such as `tensor(float)`."""
    return f"tensor({name_of(elem_type_of(dtype)).lower()})"
