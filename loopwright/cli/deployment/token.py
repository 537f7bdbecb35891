"""`loopwright token`: the access tokens of a service, in its database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, TypeAlias
from uuid import UUID

import typer
from rich.table import Table

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.options import JsonOption, ServedDbOption
from loopwright.cli.shared.output import console, err_console, moment, print_json, print_table
from service.common.quota import Quota
from service.store import tokens
from service.store.database.database import Database, open_database
from service.wire.requests import MAX_PRIORITY
from service.wire.server_models import MAX_QUOTA, TOKEN_NAME, Scope, TokenCreated, TokenRead

_DATABASE = "sqlite:///loopwright.db"

token = typer.Typer(
    name="token",
    help="Create, list and revoke access tokens in the database of a service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

NameArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Name of the token; jobs show it as their owner.", metavar="NAME", show_default=False
    ),
]


@contextmanager
def _opened(url: str, *, must_exist: bool = True) -> Iterator[Database]:
    with closing(open_database(url, must_exist=must_exist)) as database:
        yield database


@token.command()
def create(
    name: NameArgument,
    *,
    scope: Annotated[
        Scope,
        typer.Option(help="read: view; submit: also run jobs; admin: also tokens and import."),
    ] = Scope.SUBMIT,
    max_jobs: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_QUOTA, help="Maximum number of queued and running jobs."),
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_QUOTA, help="Maximum number of pending trials."),
    ] = None,
    max_priority: Annotated[
        int | None,
        typer.Option(min=-MAX_PRIORITY, max=MAX_PRIORITY, help="Maximum priority of its jobs."),
    ] = None,
    db: ServedDbOption = _DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it once. Once a token exists, every request requires one."""
    if re.fullmatch(TOKEN_NAME, name) is None or len(name) > 64:
        raise InputError(
            f"invalid token name {name!r}: expected up to 64 letters, digits and . _ @ -, "
            "and a letter or a digit first"
        )
    with _opened(db, must_exist=False) as database, database.write() as session:
        quota = Quota(max_jobs, max_trials, max_priority)
        row, made = tokens.create(session, name, [scope], quota)
        shown = TokenCreated(**tokens.read(row).model_dump(), token=made)
    if as_json:
        print_json(shown)
        return
    err_console.print(
        f"token {name!r} with scope {scope.value}; it cannot be shown again:", markup=False
    )
    typer.echo(made)


@token.command("list")
def list_tokens(db: ServedDbOption = _DATABASE, as_json: JsonOption = False) -> None:
    """List all tokens, newest first, including revoked ones."""
    with _opened(db) as database, database.read() as session:
        listed = tokens.newest_first(session)
    if as_json:
        print_json(listed)
        return
    if not listed:
        console.print("no tokens: a service on loopback is open to every local user")
        return
    table = Table("token", "name", "scopes", "limits", "created", "last used", "revoked")
    for row in listed:
        scopes = ", ".join(scope.value for scope in row.scopes)
        moments = (row.created_at, row.last_used_at, row.revoked_at)
        table.add_row(str(row.id), row.name, scopes, _limits(row), *map(moment, moments))
    print_table(table)


@token.command()
def revoke(
    name: Annotated[str, typer.Argument(help="Name or id of a token.", metavar="TOKEN")],
    db: ServedDbOption = _DATABASE,
) -> None:
    """Revoke a token; running services refuse it within a second."""
    with _opened(db) as database, database.write() as session:
        row = tokens.find(session, name)
        tokens.revoke(session, _id(name) if row is None else row.id)
    console.print(f"revoked {name}", markup=False, highlight=False)


def _limits(token: TokenRead) -> str:
    limits = {
        "{} jobs": token.max_jobs,
        "{} trials": token.max_trials,
        "priority {}": token.max_priority,
    }
    return ", ".join(text.format(most) for text, most in limits.items() if most is not None)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InputError(f"no active token {text!r}; see: loopwright token list") from None
