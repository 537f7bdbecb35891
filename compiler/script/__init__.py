"""The script dialect: a parser from text to programs that executes nothing of the text."""

from compiler.script.error import ScriptError
from compiler.script.parser import parse, parse_module

__all__ = ["ScriptError", "parse", "parse_module"]
