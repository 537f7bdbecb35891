"""The tensor-level operators, by family; importing this package declares all of them."""

from compiler.graph.operators import convolution as convolution
from compiler.graph.operators import gather as gather
from compiler.graph.operators import normalization as normalization
from compiler.graph.operators import pad as pad
from compiler.graph.operators import pooling as pooling
from compiler.graph.operators import positions as positions
from compiler.graph.operators import products as products
from compiler.graph.operators import quantization as quantization
from compiler.graph.operators import recurrent as recurrent
from compiler.graph.operators import reductions as reductions
from compiler.graph.operators import reshape as reshape
from compiler.graph.operators import scatter as scatter
from compiler.graph.operators import slices as slices
from compiler.graph.operators import sort as sort
from compiler.graph.operators import transposed_convolution as transposed_convolution
from compiler.graph.operators import triangles as triangles
from compiler.graph.operators.elementwise import activations as activations
from compiler.graph.operators.elementwise import arithmetic as arithmetic
from compiler.graph.operators.elementwise import comparison as comparison
from compiler.graph.operators.elementwise import conversion as conversion
from compiler.graph.operators.elementwise import unary as unary
from compiler.graph.operators.images import col2im as col2im
from compiler.graph.operators.images import grid_sample as grid_sample
from compiler.graph.operators.images import resize as resize
