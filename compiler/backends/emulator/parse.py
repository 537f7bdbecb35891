"""Parse PTX: from the text of a module to one kernel, with the functions that it calls inlined."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from compiler.backends.emulator.errors import EmulatorError, UnsupportedInstructionError
from compiler.backends.emulator.program import Program, PtxInstruction, PtxParameter, PtxVariable

_HEADER = re.compile(r"\.(entry|func)\s+(?:\(([^)]*)\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?")
_VARIABLE = re.compile(
    r"^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)*\.(global|const|shared)\s+(?:\.align\s+(\d+)\s+)?"
    r"\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?(?:\s*=\s*([^;]*))?;",
    re.M,
)
_MEMORY = re.compile(
    r"\.(shared|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?$"
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr(?:\s+\.(?!align)\w+)*(?:\s+\.align\s+\d+)?)?"
    r"\s+([\w$]+)(?:\[(\d+)\])?"
)
_GUARD = re.compile(r"@(!?)(%?[\w$]+)\s+")
_RANGE = re.compile(r"(%?[\w$]+)<(\d+)>")
_LABEL = re.compile(r"([\w$]+):(?!:)\s*")
_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)")


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Function:
    kind: str
    name: str
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    body: str
    line: int


@dataclass(frozen=True, slots=True)
class _Module:
    functions: dict[str, _Function]
    variables: list[tuple[str, PtxVariable]]


@dataclass(slots=True)
class _Scope:
    """The names that a pair of braces declares, with their unique forms."""

    names: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=64)
def parse_kernel(ptx: str, name: str | None = None) -> Program:
    """Return a kernel of a module.

    Args:
        ptx: The text of the module.
        name: The name of the kernel; None if the module has one only.

    Raises:
        EmulatorError: If the module has no such kernel, or the text is not PTX.
    """
    module = _parse_module(ptx)
    entries = [function.name for function in module.functions.values() if function.kind == "entry"]
    if name is None and len(entries) == 1:
        name = entries[0]
    if name not in entries:
        raise EmulatorError(f"the PTX has no kernel {name!r}: its kernels are {entries}")
    assert name is not None
    return _Builder(module).build(name)


@lru_cache(maxsize=8)
def _parse_module(ptx: str) -> _Module:
    # Comments become blanks, so that lines stay those of the text.
    text = re.sub(r"//[^\n]*|/\*.*?\*/", _blank, ptx, flags=re.S)
    functions, outside = _functions(text)
    return _Module(functions, _module_variables(outside))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n") or " "


def _functions(text: str) -> tuple[dict[str, _Function], str]:
    """Return the functions of a module that have a body, and the text outside of the bodies."""
    functions: dict[str, _Function] = {}
    outside: list[str] = []
    position = 0
    while match := _HEADER.search(text, position):
        opening, declaration_end = text.find("{", match.end()), text.find(";", match.end())
        if opening < 0 or 0 <= declaration_end < opening:
            end = match.end()  # A declaration without a body.
        else:
            end = _closing_brace(text, opening)
            functions[match[3]] = _Function(
                match[1],
                match[3],
                tuple(_split(match[2] or "")),
                tuple(_split(match[4] or "")),
                text[opening:end],
                text.count("\n", 0, opening) + 1,
            )
        outside.append(text[position : match.start()])
        position = end
    return functions, "".join(outside) + text[position:]


def _closing_brace(text: str, opening: int) -> int:
    """Return the position after the brace that closes the one at `opening`."""
    depth = 0
    for match in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return opening + match.end()
    raise EmulatorError("the PTX ends within a function")


def _statements(function: _Function) -> list[_Statement]:
    """Split the body of a function into statements, labels (`name:`) and the braces of scopes."""
    statements: list[_Statement] = []
    line = first_line = function.line
    pending = ""
    for raw in function.body.split("\n"):
        rest = raw.strip()
        while rest:
            if not pending:
                first_line = line
                if rest[0] in "{}":
                    statements.append(_Statement(rest[0], line))
                    rest = rest[1:].lstrip()
                    continue
                if label := _LABEL.match(rest):
                    statements.append(_Statement(label[1] + ":", line))
                    rest = rest[label.end() :]
                    continue
                if _LOC.match(rest):
                    statements.append(_Statement(rest, line))
                    break
                if rest.startswith((".pragma", ".file", ".section")) and ";" not in rest:
                    break
            part, separator, rest = rest.partition(";")
            pending = f"{pending} {part.strip()}" if pending else part.strip()
            rest = rest.lstrip()
            if separator:
                statements.append(_Statement(" ".join(pending.split()), first_line))
                pending = ""
        line += 1
    return statements


def _module_variables(text: str) -> list[tuple[str, PtxVariable]]:
    """Return the variables outside functions, with their spaces; dynamic arrays have no content."""
    variables = []
    for match in _VARIABLE.finditer(text):
        space, align, type_name, name, count, initial = match.groups()
        size = _bytes_of(type_name)
        length = size * int(count or (1 if count is None else 0))
        content = bytes(length)
        if initial:
            values = re.findall(r"-?(?:0[xX][0-9a-fA-F]+|\d+)", initial)
            data = b"".join((int(v, 0) % (1 << 8 * size)).to_bytes(size, "little") for v in values)
            content = data.ljust(length, b"\0")
        variables.append((space, PtxVariable(name, int(align or size), content)))
    return variables


def _bytes_of(type_name: str) -> int:
    digits = re.sub(r"\D", "", type_name)
    return int(digits) // 8 if digits else 1


def _split(text: str) -> list[str]:
    """Split operands at the commas outside brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for position, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts


class _Builder:
    """Writes the instructions of a kernel, and inlines the functions that it calls."""

    def __init__(self, module: _Module) -> None:
        self._functions = module.functions
        self._variables = module.variables
        self._labels: dict[str, int] = {}
        self._num_scopes = 0
        self._source_line: int | None = None

    def build(self, name: str) -> Program:
        program = self._program = Program(name)
        for space, variable in self._variables:
            if space != "shared":
                program.variables.append(variable)
            elif variable.content:
                self._add_shared(variable.name, variable.align, len(variable.content))
        kernel = self._functions[name]
        self._add_parameters(kernel)
        self._emit(_statements(kernel), [], None)
        for space, variable in self._variables:
            if space == "shared" and not variable.content:
                program.dynamic_shared = variable.name
                program.shared[variable.name] = _align(program.static_shared_bytes, variable.align)
        for index, instruction in enumerate(program.instructions):
            instruction.index = index
            if instruction.opcode == "bra":
                instruction.target = self._labels[instruction.operands[-1]]
        return program

    def _add_parameters(self, kernel: _Function) -> None:
        offset = 0
        for text in kernel.parameters:
            match = _PARAMETER.match(text)
            if match is None:
                raise EmulatorError(f"the parameter {text!r} is not understood")
            size = _bytes_of(match[2]) * int(match[4] or 1)
            offset = _align(offset, int(match[1] or _bytes_of(match[2])))
            self._program.parameters[match[3]] = PtxParameter(offset, size, match[2])
            offset += size

    def _emit(
        self, statements: list[_Statement], scopes: list[_Scope], return_label: str | None
    ) -> None:
        """Write the statements of one function.

        Args:
            statements: Those of its body, with the outer braces.
            scopes: The names that are visible outside the body.
            return_label: Where an inlined function returns to.
        """
        scopes = list(scopes)
        for number, statement in enumerate(statements):
            text = statement.text
            if text == "{":
                self._num_scopes += 1
                is_kernel = not scopes
                scopes.append(_Scope())
                self._declare(statements, number, scopes[-1], is_kernel)
            elif text == "}":
                scopes.pop()
            elif text.endswith(":"):
                self._labels[_unique(text[:-1], scopes)] = len(self._program.instructions)
            elif loc := _LOC.match(text):
                self._source_line = int(loc[2]) or self._source_line
            elif text and not text.startswith("."):
                self._instruction(statement, scopes, return_label)

    def _declare(
        self, statements: list[_Statement], opening: int, scope: _Scope, is_kernel: bool
    ) -> None:
        """Enter the labels, registers and variables that a pair of braces declares."""
        suffix = "" if is_kernel else f"@{self._num_scopes}"
        depth = 0
        for statement in statements[opening:]:
            text = statement.text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                break
            if depth > 1:
                continue
            if text.endswith(":"):
                scope.names[text[:-1]] = text[:-1] + suffix
            elif text.startswith(".reg"):
                _, type_name, names = text.split(None, 2)
                for name in _register_names(names):
                    scope.names[name] = name + suffix
                    self._program.registers[name + suffix] = type_name[1:]
            elif memory := _MEMORY.match(text):
                self._declare_memory(memory, scope, suffix)

    def _declare_memory(self, match: re.Match[str], scope: _Scope, suffix: str) -> None:
        space, align_text, type_name, name, count = match.groups()
        size = _bytes_of(type_name) * int(count or 1)
        align = int(align_text or _bytes_of(type_name))
        unique = name + suffix
        scope.names[name] = unique
        if space == "shared":
            self._add_shared(unique, align, size)
        else:  # Parameters of calls live in local memory.
            offset = _align(self._program.local_bytes, align)
            self._program.local[unique] = offset
            self._program.local_bytes = offset + size

    def _add_shared(self, name: str, align: int, size: int) -> None:
        offset = _align(self._program.static_shared_bytes, align)
        self._program.shared[name] = offset
        self._program.static_shared_bytes = offset + size

    def _instruction(
        self, statement: _Statement, scopes: list[_Scope], return_label: str | None
    ) -> None:
        text = statement.text
        guard, is_negated = None, False
        if match := _GUARD.match(text):
            guard, is_negated = _unique(match[2], scopes), bool(match[1])
            text = text[match.end() :]
        name, _, rest = text.partition(" ")
        parts = tuple(name.split("."))
        if parts[0] == "call":
            self._call(statement, rest, scopes)
            return
        operands = tuple(_split(rest))
        if len(scopes) > 1:
            operands = tuple(
                _NAME.sub(lambda match: _unique(match[0], scopes), operand) for operand in operands
            )
        if parts[0] == "ret" and return_label is not None:
            parts, operands = ("bra",), (return_label,)
        self._program.instructions.append(
            PtxInstruction(
                parts,
                operands,
                guard,
                is_negated,
                statement.line,
                self._source_line,
                statement.text,
            )
        )

    def _call(self, statement: _Statement, rest: str, scopes: list[_Scope]) -> None:
        """Inline a call: its parameters are variables of the caller in local memory."""
        operands = _split(rest)
        results = _split(operands.pop(0).strip("()")) if operands[0].startswith("(") else []
        function = self._functions.get(operands[0])
        if function is None:
            raise UnsupportedInstructionError(statement.text, statement.line)
        arguments = _split(operands[1].strip("()")) if len(operands) > 1 else []
        scope = _Scope()
        formals = [_PARAMETER.match(text) for text in (*function.results, *function.parameters)]
        for formal, actual in zip(formals, [*results, *arguments], strict=True):
            assert formal is not None
            scope.names[formal[3]] = _unique(actual, scopes)
        self._num_scopes += 1
        return_label = f"return@{self._num_scopes}"
        self._emit(_statements(function), [scope], return_label)
        self._labels[return_label] = len(self._program.instructions)


def _register_names(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            names.append(part.strip())
        else:
            names.extend(f"{match[1]}{number}" for number in range(int(match[2])))
    return names


def _unique(name: str, scopes: list[_Scope]) -> str:
    for scope in reversed(scopes):
        if name in scope.names:
            return scope.names[name]
    return name


def _align(offset: int, align: int) -> int:
    return -(-offset // align) * align
