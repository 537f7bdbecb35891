"""Read ONNX models into graphs; the only package that imports `onnx` (extra `[onnx]`)."""

from compiler.graph.read_onnx import conversions as conversions
from compiler.graph.read_onnx.model import read_onnx as read_onnx
