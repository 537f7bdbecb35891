"""Programs: a function over buffers, and modules of several functions."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from compiler.executor.named_type import named_type
from compiler.ir.core.nodes import (
    AnnotationDict,
    Annotations,
    AnnotationValue,
    Block,
    BlockRealize,
    Buffer,
    SymbolValues,
    Var,
)
from compiler.ir.core.spelling import Dialect

GivenAnnotation: TypeAlias = (
    "AnnotationValue | list[AnnotationValue] | Mapping[str, AnnotationValue]"
)


class ProgramMethods(Protocol):
    """Methods of programs that require higher rooms; `compiler.ir` provides them."""

    def script(self, program: PrimFunc | IRModule, dialect: Dialect) -> str:
        """Print a program."""
        ...

    def show(self, text: str) -> None:
        """Show a script in a terminal or a notebook."""
        ...

    def html(self, text: str) -> str:
        """Return a script as HTML, in colour."""
        ...

    def one_line(self, func: PrimFunc) -> str:
        """Return the name and the parameters of a function."""
        ...

    def specialize(self, func: PrimFunc, values: SymbolValues) -> PrimFunc:
        """Give symbolic variables values, and verify the result."""
        ...


_methods: list[ProgramMethods] = []


def provide_methods(methods: ProgramMethods) -> None:
    """Set the implementation of the methods of all programs."""
    _methods[:] = [methods]


def _provided() -> ProgramMethods:
    return _methods[0]


class _Printed:
    """The common part of functions and modules: both are shown as scripts."""

    __slots__ = ()

    def script(self, dialect: Dialect = "new") -> str:
        """Return the text, which `parse` reads back, or `parse_module` for a module.

        Args:
            dialect: The spelling: "new" is that of current TVM, "middle" and "old" are older ones.
        """
        assert isinstance(self, PrimFunc | IRModule), "a program is a PrimFunc or an IRModule"
        return _provided().script(self, dialect=dialect)

    def show(self, dialect: Dialect = "new") -> None:
        """Print the script, in colour if the terminal or notebook supports it."""
        _provided().show(self.script(dialect))

    def _repr_html_(self) -> str:
        return _provided().html(self.script())

    def __str__(self) -> str:
        return self.script()


@dataclass(frozen=True, slots=True, repr=False)
class PrimFunc(_Printed):
    """A function over buffers; its body is the realisation of a block called "root".

    Variables in the shapes of its buffers, and parameters that are not buffers, are symbolic. A
    kernel for a CPU takes their values from its arguments, in their ranges, which the attributes
    `tir_var_lower_bound` and `tir_var_upper_bound` declare. `specialize` replaces them by values.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    body: BlockRealize
    attrs: Annotations = ()

    def __repr__(self) -> str:
        return f"<PrimFunc {_provided().one_line(self)}>"

    @property
    def root(self) -> Block:
        """Return the block that holds the whole program and the buffers it allocates."""
        return self.body.block

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Return the parameters that are buffers."""
        return tuple(param for param in self.params if isinstance(param, Buffer))

    def specialize(self, values: SymbolValues) -> PrimFunc:
        """Return the program with symbolic variables replaced by integers.

        Args:
            values: Values by variable, or by name.

        Raises:
            TypeError: If `values` is not a mapping of variables or names to integers.
            ValueError: If a variable is not one of the program's, or its value is not positive, or
                too large for its type.
            VerifyError: If the program is not legal for these values, for example because an access
                may be out of bounds. It is a ValueError, too.
        """
        return _provided().specialize(self, values)

    def with_attr(
        self,
        attr: str | Mapping[str, GivenAnnotation],
        value: GivenAnnotation | None = None,
    ) -> PrimFunc:
        """Return the program with more attributes; `"global_symbol"` also names the function.

        Args:
            attr: The key of an attribute, or several attributes as a mapping.
            value: The value, if one key is given.

        Raises:
            TypeError: If a key comes without a value, or a mapping with one.
            ValueError: If `"global_symbol"` is not a name.
        """
        if isinstance(attr, str) == (value is None):
            raise TypeError("with_attr takes a key and its value, or a mapping")
        more: dict[str, AnnotationValue] = {}
        if not isinstance(attr, str):
            more.update({key: _annotation(item) for key, item in attr.items()})
        elif value is not None:
            more[attr] = _annotation(value)
        attrs = {**dict(self.attrs), **more}
        name = more.get("global_symbol", self.name)
        if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
            raise ValueError(f"global_symbol is {name!r}: expected the name of a function")
        return replace(self, name=name, attrs=tuple(attrs.items()))


def _annotation(value: GivenAnnotation) -> AnnotationValue:
    """Return a value as the value of an attribute, which a mapping or a list is not."""
    if isinstance(value, list):
        return tuple(map(_annotation, value))
    if isinstance(value, Mapping):
        return AnnotationDict(tuple((key, _annotation(item)) for key, item in value.items()))
    return value


@dataclass(frozen=True, slots=True, repr=False)
class IRModule(_Printed):
    """Several functions with distinct names: a tuple, or a mapping that gives the names."""

    functions: tuple[PrimFunc, ...]

    def __post_init__(self) -> None:
        functions: object = self.functions
        if isinstance(functions, Mapping):
            functions = tuple(replace(func, name=name) for name, func in functions.items())
            object.__setattr__(self, "functions", functions)
        if not isinstance(functions, tuple):
            kind = named_type(functions)
            raise TypeError(f"an IRModule takes a tuple or a mapping of functions, not {kind}")
        names: set[str] = set()
        for func in functions:
            if func.name in names:
                raise ValueError(f"two functions of the module are called {func.name}")
            names.add(func.name)

    def __repr__(self) -> str:
        return f"<IRModule of {', '.join(func.name for func in self.functions) or 'no function'}>"

    def choice(self, module: str = "module") -> str:
        """Return a sentence with the functions of the module and how to select one.

        Args:
            module: The expression for the module in that sentence.
        """
        if not self.functions:
            return "the module holds none"
        names = ", ".join(func.name for func in self.functions)
        return f'the module holds {names}: pass one of them, {module}["{self.functions[0].name}"]'

    def __getitem__(self, name: str) -> PrimFunc:
        """Return a function by its name; the only function of a module is its `main`, too.

        Raises:
            KeyError: If there is no such function.
        """
        for func in self.functions:
            if func.name == name:
                return func
        if name == "main" and len(self.functions) == 1:
            return self.functions[0]
        names = ", ".join(func.name for func in self.functions) or "none"
        raise KeyError(f"no function {name!r} in the module: expected one of {names}")
