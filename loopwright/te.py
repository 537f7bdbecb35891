"""Tensor expressions and their schedules: `from loopwright import te`."""

from compiler import te as _expressions
from compiler.te import *  # noqa: F403 - all of its public names
from compiler.te.axis import TensorAxis
from compiler.te_schedule.error import StageError
from compiler.te_schedule.inserted import InsertedTensor
from compiler.te_schedule.stage import Stage
from compiler.te_schedule.tensor_intrin import decl_tensor_intrin, hardware_intrin
from compiler.te_schedule.tensor_schedule import TensorSchedule, create_schedule
from compiler.te_schedule.thread_axis import thread_axis

__all__ = [
    "InsertedTensor",
    "Stage",
    "StageError",
    "TensorAxis",
    "TensorSchedule",
    "create_schedule",
    "decl_tensor_intrin",
    "hardware_intrin",
    "thread_axis",
]
__all__ += _expressions.__all__
