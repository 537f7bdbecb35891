"""Operators as programs: extents in, a finished program out. Importing this declares all of them.

A module here is named below; nothing else lists operators.
"""

# ruff: noqa: F403
from compiler.ops.programs.attention import *
from compiler.ops.programs.blocked_convolution import *
from compiler.ops.programs.convolution import *
from compiler.ops.programs.elementwise import *
from compiler.ops.programs.indexing import *
from compiler.ops.programs.linear import *
from compiler.ops.programs.normalization import *
from compiler.ops.programs.pooling import *
from compiler.ops.programs.quantized import *
from compiler.ops.programs.recurrent import *
from compiler.ops.programs.reductions import *
from compiler.ops.programs.shape import *
from compiler.ops.programs.weight_only import *
from compiler.ops.programs.winograd import *
