"""Scripts that were changed at random: their bytes, their tokens, or their syntax trees.

They start from scripts of golden files, of the course notes' programs, of the operator library, of
random schedules' workloads and of `random_texts.py`.
"""

from __future__ import annotations

import ast
import copy
import re
from functools import cache
from pathlib import Path
from random import Random

from compiler import ops
from compiler.ir.text.printer import script
from tests.property.generators.texts import RandomText
from tests.property.test_script_fuzzer import POOL, TEXTS

_TESTS = Path(__file__).parents[1]
_SPECS = (
    *("matmul:8,12,16", "conv2d:1,2,5,5,2,3,1,1", "softmax:4,4", "layer_norm:4,8", "mean:4,5,6"),
    *("attention:1,1,4,8,8", "cumsum:3,8", "transpose:8,4", "max_pool2d:1,2,6,6,2,2", "add:8"),
)
_CONSTANTS: tuple[object, ...] = (
    *(0, 1, -1, 2, 3, 7, 64, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 64, 10**30),
    *(0.0, -0.0, 0.5, 1e30, 1e-45, float("inf"), True, None, "", "float32", "int64", "local"),
)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow, ast.LShift)
_PROGRAM = re.compile(r"^@T\.prim_func.*?(?=^\S(?!ef )|\Z)", re.MULTILINE | re.DOTALL)
_MAX_CHARS = 20_000


@cache
def corpus() -> tuple[str, ...]:
    """Return the scripts that mutations start from."""
    golden = [
        program
        for path in sorted((_TESTS / "golden").glob("schedule/*/*.txt"))
        for program in _PROGRAM.findall(path.read_text(encoding="utf-8"))
    ]
    notes = [
        found
        for path in sorted((_TESTS / "seeds").glob("*.py"))
        for found in re.findall(r'"""(\n@[^"]*)"""', path.read_text(encoding="utf-8"))
    ]
    made = [RandomText(seed).text() for seed in range(40)]
    texts = [*TEXTS, *golden, *notes, *(script(ops.from_spec(s)) for s in _SPECS), *made]
    return tuple(sorted({text for text in texts if len(text) <= _MAX_CHARS}))


def mutated(rng: Random) -> str:
    """Return a script of the corpus after a few changes of one kind, usually a single one."""
    text = rng.choice(corpus())
    change = rng.choice((_change_tokens, _change_tokens, _change_tree, _change_tree, _change_bytes))
    return change(text, rng.choice((1, 1, 1, 2, 4)), rng)


def _change_bytes(text: str, times: int, rng: Random) -> str:
    data = bytearray(text.encode())
    for _ in range(times):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[place:place] = rng.randbytes(rng.randint(1, 3))
            case 1:
                del data[place : place + rng.randint(1, 8)]
            case 2:
                data[place : place + 1] = bytes([rng.randrange(256)])
            case _:
                other = rng.randrange(len(data) + 1)
                data[place:place] = data[other : other + rng.randint(1, 200)]
    return data.decode(rng.choice(("utf-8", "latin-1")), "replace")


def _change_tokens(text: str, times: int, rng: Random) -> str:
    tokens = re.findall(r"\w+|[^\w\s]|\s+", text)
    for _ in range(times):
        place, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0:
                tokens[place] = rng.choice(POOL)
            case 1:
                tokens.insert(place, rng.choice(POOL))
            case 2 if len(tokens) > 1:
                del tokens[place]
            case 3:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case _:
                tokens[place:place] = tokens[other : other + 30]
    return "".join(tokens)


def _change_tree(text: str, times: int, rng: Random) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return _change_tokens(text, times, rng)
    for _ in range(times):
        _change_node(tree, rng)
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return _change_tokens(text, times, rng)  # the tree is none that Python can write


def _change_node(tree: ast.Module, rng: Random) -> None:
    """Replace one expression or statement, usually by another of the program."""
    nodes = list(ast.walk(tree))
    if rng.random() < 0.3:
        bodies = [
            body for n in nodes if isinstance(body := getattr(n, "body", None), list) and body
        ]
        _change_statements(rng.choice(bodies), rng)
        return
    match rng.choice([n for n in nodes if isinstance(n, ast.expr | ast.arg)]):
        case ast.Constant() as constant:
            constant.value = rng.choice(_CONSTANTS)  # type: ignore[assignment]
        case ast.BinOp() as operation if rng.random() < 0.5:
            operation.op = rng.choice(_OPERATORS)()
        case ast.Name() as name if rng.random() < 0.8:
            name.id = rng.choice([n.id for n in nodes if isinstance(n, ast.Name)])
        case ast.Attribute() as attribute:
            attribute.attr = rng.choice([n.attr for n in nodes if isinstance(n, ast.Attribute)])
        case ast.Call() as call if call.args and rng.random() < 0.5:
            call.args.pop(rng.randrange(len(call.args)))
        case ast.arg() as parameter:
            parameter.arg = rng.choice([n.arg for n in nodes if isinstance(n, ast.arg)])
        case expression:
            others = [n for n in nodes if isinstance(n, ast.expr) and n is not expression]
            _replace(tree, expression, copy.deepcopy(rng.choice(others)))


def _change_statements(body: list[ast.stmt], rng: Random) -> None:
    place = rng.randrange(len(body))
    match rng.randrange(3):
        case 0 if len(body) > 1:
            del body[place]
        case 1:
            body.insert(place, copy.deepcopy(rng.choice(body)))
        case _:
            body[place:place] = copy.deepcopy(getattr(body[place], "body", body)[:3])


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
                return
            if isinstance(value, list) and any(each is old for each in value):
                value[[each is old for each in value].index(True)] = new
                return
