"""Read programs of PyTorch into graphs; nothing here imports `torch`."""

from compiler.graph.read_torch import conversions as conversions
from compiler.graph.read_torch.program import TorchProgram as TorchProgram
from compiler.graph.read_torch.reader import read_torch as read_torch
