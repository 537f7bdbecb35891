"""The conversions of ATen operators, by family; importing this package declares all of them."""

from compiler.graph.read_torch.conversions import attention as attention
from compiler.graph.read_torch.conversions import convolution as convolution
from compiler.graph.read_torch.conversions import creation as creation
from compiler.graph.read_torch.conversions import indexing as indexing
from compiler.graph.read_torch.conversions import maps as maps
from compiler.graph.read_torch.conversions import moves as moves
from compiler.graph.read_torch.conversions import normalization as normalization
from compiler.graph.read_torch.conversions import pooling as pooling
from compiler.graph.read_torch.conversions import products as products
from compiler.graph.read_torch.conversions import recurrent as recurrent
from compiler.graph.read_torch.conversions import reductions as reductions
