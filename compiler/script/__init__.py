"""The script dialect: text in, programs out; nothing of the text is executed."""

from compiler.script.error import ScriptError
from compiler.script.parser import parse, parse_module

__all__ = ["ScriptError", "parse", "parse_module"]
