"""The methods of programs that need the printer, the verifier, or a terminal.

Programs are in the lowest room, `core`, which imports none of these.
"""

from __future__ import annotations

from compiler.ir.analysis.specialize import specialize
from compiler.ir.core.nodes import SymbolValues
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.ir.text.one_line import describe_func
from compiler.ir.text.printer import script
from compiler.ir.verify.verify import verify


class Methods:
    """The implementation of `ProgramMethods`."""

    def script(self, program: PrimFunc | IRModule, dialect: Dialect) -> str:
        """Print a program."""
        return script(program, dialect=dialect)

    def show(self, text: str) -> None:
        """Show a script in a terminal or a notebook."""
        from compiler.ir.text import highlight  # noqa: PLC0415 (it loads rich; few are shown)

        highlight.show(text)

    def html(self, text: str) -> str:
        """Return a script as HTML, in colour."""
        from compiler.ir.text import highlight  # noqa: PLC0415

        return highlight.html(text)

    def one_line(self, func: PrimFunc) -> str:
        """Return the name and the parameters of a function."""
        return describe_func(func)

    def specialize(self, func: PrimFunc, values: SymbolValues) -> PrimFunc:
        """Give symbolic variables values, and verify the result."""
        specialized = specialize(func, values)
        verify(specialized)
        return specialized
