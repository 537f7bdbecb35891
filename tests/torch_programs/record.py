"""From a case to what PyTorch makes of it."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves

from loopwright.torch.export import export_module
from loopwright.torch.tensors import array_of
from tests.torch_programs.case import Case
from tests.torch_programs.storage import RecordedCase


def record_case(name: str, case: Case) -> RecordedCase:
    """Return the program of a case, with its inputs and PyTorch's results."""
    module, inputs = case.module(name)
    program = export_module(module, inputs)
    with torch.no_grad():
        results = [array_of(result) for result in tree_leaves(module(*inputs))]
    arrays = dict(zip(program.inputs, map(array_of, inputs), strict=True))
    return RecordedCase(name, program, arrays, results)
