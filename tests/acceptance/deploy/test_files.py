"""The files of deployments: valid by their schemas, hardened, and in agreement with each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.acceptance.deploy.compose_file import ROOT, read, start_order
from tests.acceptance.deploy.service_process import find_program
from workers.engine import certificates

DEPLOY = ROOT / "deploy"
OVERRIDES = sorted((DEPLOY / "compose").glob("*.yml"))
VARIABLES = {"LOOPWRIGHT_SCHEDULER_HOST": "a.example"}
COMPOSE = read()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
STEPS = {"migrate", "certificate"}


@pytest.mark.parametrize("path", [ROOT / "docker-compose.yml", *OVERRIDES], ids=lambda p: p.name)
def test_a_compose_file_follows_the_schema_of_the_specification(path: Path) -> None:
    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text(encoding="utf-8"))
    jsonschema.validate(read(path, VARIABLES), schema)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"privileged", "cap_add", "pid", "ipc"} & set(service)
    if name not in STEPS:
        assert {"memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"]


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_has_a_tag_that_names_a_version(name: str) -> None:
    _, tag = SERVICES[name]["image"].rsplit(":", 1)
    assert re.match(r"v?\d+\.\d|\d+-", tag), tag


def networks(name: str) -> set[str]:
    return set(SERVICES[name].get("networks", ()))


def test_the_database_is_reachable_from_apis_and_coordinators_only() -> None:
    users = {name for name in SERVICES if "database" in networks(name)}
    assert users == {"postgres", "migrate", "api-1", "api-2", "coordinator-1", "coordinator-2"}
    assert networks("postgres") == {"database"}


def test_workers_reach_the_scheduler_only() -> None:
    users = {name for name in SERVICES if "cluster" in networks(name)}
    assert {name for name in users if networks(name) == {"cluster"}} == {
        *("scheduler", "worker-1", "worker-2", "worker-gpu"),
    }
    assert users - {"coordinator-1", "coordinator-2"} == {
        *("scheduler", "worker-1", "worker-2", "worker-gpu"),
    }


def test_only_services_with_a_published_port_are_in_networks_with_a_way_out() -> None:
    outer = {name for name, network in COMPOSE["networks"].items() if not network.get("internal")}
    assert {name for name in SERVICES if networks(name) & outer} == {
        name for name in SERVICES if "ports" in SERVICES[name]
    }
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_secrets_are_files_that_git_ignores() -> None:
    sources = [secret["file"] for secret in COMPOSE["secrets"].values()]
    assert {str(Path(source).parent) for source in sources} == {"deploy/secrets"}
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    for service in SERVICES.values():
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|TOKEN|SECRET", name):
                assert value.startswith("/run/secrets/"), name


def test_mounted_files_exist() -> None:
    mounted = [v.split(":") for s in SERVICES.values() for v in s.get("volumes", ())]
    for source, *_, mode in mounted:
        if source not in COMPOSE["volumes"]:
            assert (ROOT / source).is_file(), source
            assert mode == "ro"


@pytest.mark.parametrize("name", ["development", "production", "cluster-port"])
def test_an_override_changes_services_that_exist(name: str) -> None:
    override = read(DEPLOY / "compose" / f"{name}.yml", VARIABLES)
    assert set(override["services"]) <= set(SERVICES)


def test_the_order_of_the_start_has_the_database_first_and_the_proxy_last() -> None:
    order = [name for group in start_order(SERVICES) for name in group]
    places = [order.index(name) for name in ("postgres", "migrate", "api-1", "proxy")]
    assert places == sorted(places)


def test_the_image_has_all_packages_and_no_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = set(re.findall(r"^COPY (\w+)/ \1/$", dockerfile, re.MULTILINE))
    project = (ROOT / "pyproject.toml").read_text()
    packages = re.search(r"^include = \[(.*)\]$", project, re.MULTILINE)
    assert packages is not None
    assert copied == set(re.findall(r'"(\w+)\*"', packages[1]))
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE) == ["10001:10001"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}/" for name in copied} <= set(ignored)


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    script = shutil.copy(DEPLOY / "make-secrets", tmp_path)

    def made() -> dict[str, str]:
        subprocess.run([script], check=True, capture_output=True)
        return {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}

    first = made()
    assert set(first) == set(COMPOSE["secrets"]) - {"metrics_token"}
    assert len(set(first.values())) == len(first)
    assert all(len(word.strip()) >= 64 for word in first.values())
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    (tmp_path / "secrets" / "admin_token").unlink()
    second = made()
    assert second.pop("admin_token") != first.pop("admin_token")
    assert second == first


@pytest.mark.parametrize("has_tls", [False, True])
def test_the_proxy_accepts_its_files(tmp_path: Path, has_tls: bool) -> None:
    program = find_program("haproxy")
    if program is None:
        pytest.skip("haproxy is not installed")
    settings = {
        "LOOPWRIGHT_PROXY_LISTEN": "127.0.0.1:8080",
        "LOOPWRIGHT_PROXY_STATUS": "127.0.0.1:8404",
    }
    if has_tls:
        settings["LOOPWRIGHT_PROXY_TLS_LISTEN"] = "127.0.0.1:8443"
        settings["LOOPWRIGHT_PROXY_TLS_PEM"] = str(certificate(tmp_path))
    folder = DEPLOY / "proxy"
    checked = subprocess.run(
        [program, "-c", "-f", folder / "proxy.cfg", "-f", folder / "servers.cfg"],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    warnings = [line for line in checked.stderr.splitlines() if "[WARNING]" in line]
    assert [line for line in warnings if "could not resolve" not in line] == []


def certificate(folder: Path) -> Path:
    """Write a certificate and its key into one file."""
    certificates.make(folder)
    pem = folder / "tls.pem"
    pem.write_text(
        (folder / certificates.CERTIFICATE).read_text() + (folder / certificates.KEY).read_text()
    )
    return pem
