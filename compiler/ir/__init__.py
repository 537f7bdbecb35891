"""The loop IR: nodes, visitors, integer arithmetic, printing helpers, the verifier, the oracle."""

from compiler.ir.core.program import provide_methods
from compiler.ir.program_methods import Methods

provide_methods(Methods())
