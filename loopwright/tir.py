"""The names of TVM's `tvm.tir` that programs use: `lw.tir.Schedule` is `lw.Schedule`."""

from compiler.ir.core.program import PrimFunc
from compiler.schedule.index.index_map import IndexMap
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.schedule import Schedule

__all__ = ["IndexMap", "PrimFunc", "Schedule", "TensorIntrin"]
