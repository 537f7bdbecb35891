"""The conversions of ONNX operators, by family; importing this package declares all of them."""

from compiler.graph.read_onnx.conversions import arithmetic as arithmetic
from compiler.graph.read_onnx.conversions import constants as constants
from compiler.graph.read_onnx.conversions import control_flow as control_flow
from compiler.graph.read_onnx.conversions import convolution as convolution
from compiler.graph.read_onnx.conversions import data_dependent as data_dependent
from compiler.graph.read_onnx.conversions import einsum as einsum
from compiler.graph.read_onnx.conversions import functions as functions
from compiler.graph.read_onnx.conversions import indexing as indexing
from compiler.graph.read_onnx.conversions import moves as moves
from compiler.graph.read_onnx.conversions import normalization as normalization
from compiler.graph.read_onnx.conversions import pooling as pooling
from compiler.graph.read_onnx.conversions import products as products
from compiler.graph.read_onnx.conversions import quantization as quantization
from compiler.graph.read_onnx.conversions import recurrent as recurrent
from compiler.graph.read_onnx.conversions import reductions as reductions
from compiler.graph.read_onnx.conversions import resize as resize
from compiler.graph.read_onnx.conversions import sequences as sequences
from compiler.graph.read_onnx.conversions import signals as signals
