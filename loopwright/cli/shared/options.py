"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit
from uuid import UUID

import typer

from compiler.backends.cpu.runner_devices import use_runners
from compiler.backends.cuda.nvrtc import require_nvrtc
from compiler.script import parse
from compiler.target.emulated import emulate_gpus
from loopwright.cli.shared.failure import InputError
from loopwright.client.client import DEFAULT_URL, Client
from loopwright.client.requests import read_id
from loopwright.errors import LoopwrightError
from loopwright.workload import to_func
from workers.log_format import LOGS, LogFormat

WorkloadArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A script file, or an operator such as matmul:512,512,512:float32.",
        metavar="WORKLOAD",
        show_default=False,
    ),
]
WorkloadsArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="One or more script files or operators such as matmul:512,512,512:float32.",
        metavar="WORKLOAD",
        show_default=False,
    ),
]
TargetOption: TypeAlias = Annotated[
    str, typer.Option("--target", help='Target, such as "cpu" or "cpu -mcpu=znver3 -num-cores=1".')
]
UrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="LOOPWRIGHT_URL",
        help=f"Server URL; by default {DEFAULT_URL}.",
        show_default=False,
    ),
]
TokenOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--token", envvar="LOOPWRIGHT_TOKEN", help="Access token."),
]
JobNameOption: TypeAlias = Annotated[
    str | None, typer.Option("--name", help="Name of the job, to find it.")
]
JobNoteOption: TypeAlias = Annotated[str | None, typer.Option("--note", help="Note on the job.")]
TagOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Tag of the job, in lower case; may be repeated."),
]
WebhookOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--webhook", help="URL that the server notifies when the search has ended."),
]
WebhookSecretOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--webhook-secret",
        envvar="LOOPWRIGHT_WEBHOOK_SECRET",
        help="Secret that signs the event: whsec_ and random bytes in base64.",
        show_default=False,
    ),
]
WindowOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--window",
        help="Hours in which the server measures, such as '22:00-06:00 Europe/Berlin'; in UTC "
        "without a time zone.",
    ),
]
OptionalTargetOption: TypeAlias = Annotated[
    str | None, typer.Option("--target", help="Only jobs for this target.")
]
DbOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Database URL, such as sqlite:///loopwright.db, instead of a server."),
]
HostOption: TypeAlias = Annotated[
    str, typer.Option("--host", help="Listen address; any but loopback requires a token.")
]
PortOption: TypeAlias = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port; 0 selects a free one.")
]
ServedDbOption: TypeAlias = Annotated[
    str, typer.Option("--db", envvar="LOOPWRIGHT_DB", help="Database URL.")
]
ServedTokenOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="LOOPWRIGHT_TOKEN",
        help="Administrator token, in addition to those of `loopwright token`.",
    ),
]
ServedTokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="LOOPWRIGHT_TOKEN_FILE",
        help="File with the administrator token, instead of --token.",
        show_default=False,
    ),
]


def served_token(token: str | None, token_file: Path | None) -> str | None:
    """Return the administrator token of a service, read from its file if there is one.

    Raises:
        InputError: If there are both, or the file has no token.
    """
    if token_file is None:
        return token
    if token:
        raise InputError("an administrator token and a file with one: expected only one of them")
    try:
        text = token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise InputError(f"cannot read the token file {token_file}: {reason}") from error
    if not text or len(text.split()) > 1:
        raise InputError(f"the token file {token_file} has no token: expected one word")
    return text


SigningKeyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--signing-key",
        envvar="LOOPWRIGHT_SIGNING_KEY",
        help="Key file of `loopwright key`, to sign compiled kernels.",
        show_default=False,
    ),
]
RateLimitOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--rate-limit",
        envvar="LOOPWRIGHT_RATE_LIMIT",
        min=0,
        help="Requests per second for each token (or address without a token); 0 for no limit.",
    ),
]
RemotesOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--remotes",
        help="Offer remote sessions: who may submit jobs may then run code of their own on the "
        "workers, in their sandbox.",
    ),
]
NumJobsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--jobs", min=1, max=1000, help="Jobs to run at a time on the workers of a cluster."
    ),
]
NumWorkersOption: TypeAlias = Annotated[
    int, typer.Option("--workers", min=1, max=256, help="Number of embedded workers.")
]


def _set_emulated(gpus: list[str] | None) -> list[str] | None:
    # Workers and their children inherit them from the environment.
    if gpus:
        emulate_gpus(gpus)
        require_nvrtc()
    return gpus


EmulateOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--emulate",
        callback=_set_emulated,
        metavar="GPU",
        help="GPU that the workers emulate on the CPU, such as h200; may be repeated. "
        "Its times are estimates.",
        show_default=False,
    ),
]


def _set_runners(texts: list[str] | None) -> list[str] | None:
    # As for emulated GPUs.
    if texts:
        use_runners(texts)
    return texts


RunnerOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--runner",
        callback=_set_runners,
        metavar="'TARGET @ COMMAND'",
        help="Device without Python to measure on, such as 'cpu -mcpu=cortex-a72 @ ssh board "
        "./loopwright-runner'; may be repeated.",
        show_default=False,
    ),
]


def _cluster_address(text: str | None) -> str | None:
    """Return the address of a scheduler unchanged, after validating it."""
    if text is None:
        return None
    with suppress(ValueError):  # of a port
        parts = urlsplit(text)
        is_whole = parts.scheme == "tls" and parts.hostname and parts.port
        if is_whole and text == f"tls://{parts.netloc}" and "@" not in text:
            return text
    raise typer.BadParameter(
        f"{text!r} is not a scheduler address: expected tls://HOST:PORT, such as "
        "tls://127.0.0.1:8786, as `loopwright scheduler` prints it"
    )


SchedulerArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Scheduler address, such as tls://HOST:8786.",
        metavar="ADDRESS",
        callback=_cluster_address,
    ),
]
OptionalSchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Use the workers of this cluster, such as tls://HOST:8786.",
        callback=_cluster_address,
    ),
]


def _keep_log_format(log_format: LogFormat) -> LogFormat:
    # Child processes inherit it from the environment.
    os.environ[LOGS] = log_format
    return log_format


LogFormatOption: TypeAlias = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar=LOGS,
        callback=_keep_log_format,
        help="Log format: plain text or JSON objects.",
    ),
]
DEFAULT_CERTIFICATES = Path("~/.config/loopwright/cluster").expanduser()
CertificatesOption: TypeAlias = Annotated[
    Path,
    typer.Option(envvar="LOOPWRIGHT_CERTIFICATES", help="Folder of the cluster's certificate."),
]


def _in_a_folder(path: Path | None) -> Path | None:
    """Return the path of a file unchanged, if it can be created."""
    if path is None or os.access(path.parent, os.W_OK):
        return path
    raise typer.BadParameter(f"cannot create {path}: its folder is missing or not writable")


ReadyFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        envvar="LOOPWRIGHT_READY_FILE",
        callback=_in_a_folder,
        help="File to renew every few seconds while this part is ready, for health checks.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


_COMPLETION_SECS = 2.0
"""Time limit of a completion, during which the shell is blocked. Chosen."""
_MAX_COMPLETED = 50
"""Maximum number of jobs in a completion. Chosen for a terminal."""


def complete_job(incomplete: str) -> list[tuple[str, str]]:
    """Return the newest jobs with an id prefix, for shell completion; none on any error."""
    try:
        with Client(timeout_secs=_COMPLETION_SECS, attempts=1) as client:
            jobs = list(client.jobs(limit=200))
    except LoopwrightError:
        return []
    matching = [job for job in jobs if str(job.id).startswith(incomplete)]
    return [(str(job.id), f"{job.workload_name}, {job.state}") for job in matching[:_MAX_COMPLETED]]


def _job_id(text: str) -> UUID:
    try:
        return read_id(text, "job")
    except ValueError as error:
        raise typer.BadParameter(f"{error}; `loopwright jobs` lists them") from None


JobArgument: TypeAlias = Annotated[
    UUID,
    typer.Argument(
        help="Job id.",
        metavar="JOB",
        show_default=False,
        autocompletion=complete_job,
        parser=_job_id,
    ),
]


def read_workload(argument: str) -> str:
    """Return a script's text or an operator, after validating it.

    Raises:
        ScriptError: If the file is not a script; the error shows the place.
        OperatorError: If the operator is unknown.
        InputError: If the file cannot be read.
    """
    path = Path(argument)
    if not argument.strip():
        raise InputError("a workload is missing: expected a script file or an operator")
    if not path.exists() and path.suffix == "" and "/" not in argument:
        to_func(argument)
        return argument
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"the script {argument} cannot be read: {reason}") from error
    parse(text, filename=argument)
    return text
