"""Graphs of tensor-level operators: what a model is before it becomes programs."""

from compiler.graph import operators as operators
from compiler.graph.nodes import provide_printer
from compiler.graph.text.printer import print_graph

provide_printer(print_graph)
