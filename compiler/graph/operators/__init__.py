"""The tensor-level operators, by family; importing this package declares all of them."""

from compiler.graph.operators import arithmetic as arithmetic
from compiler.graph.operators import products as products
