"""The systemd units and the Kubernetes manifests: valid, confined, with commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from loopwright.cli.main import COMMANDS, load_command
from tests.acceptance.deploy.compose_file import ROOT, read

SYSTEMD = ROOT / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
PROGRAM = "/opt/loopwright/bin/loopwright"
KUSTOMIZATION = ROOT / "deploy" / "kustomization.yaml"
MANIFESTS = [
    (path.stem, document)
    for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
KUBERNETES = ("1.34", "1.37")
"""The oldest and the newest version whose schemas the manifests follow."""


def check_command(words: list[str]) -> None:
    """Check that a command of `loopwright` exists, with the options that it is given."""
    name, *arguments = words
    assert name in COMMANDS
    command: Any = load_command(name)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("--")} <= known


def settings(unit: Path) -> dict[str, list[str]]:
    """Return the lines of a unit by their key; the drop-in of all units comes first."""
    found: dict[str, list[str]] = {}
    for path in (SYSTEMD / "loopwright-.service.d" / "confinement.conf", unit):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_confined_and_starts_a_command_that_exists(unit: Path) -> None:
    lines = settings(unit)
    assert lines["User"][0].startswith("loopwright")
    assert lines["NoNewPrivileges"] == ["yes"]
    assert lines["ProtectSystem"] == ["strict"]
    assert lines["CapabilityBoundingSet"][-1] in {"", "CAP_NET_BIND_SERVICE"}
    words = shlex.split(lines["ExecStart"][0])
    if PROGRAM in words:
        check_command(words[words.index(PROGRAM) + 1 :])


def test_the_units_have_the_services_of_the_compose_file() -> None:
    names = {re.sub(r"^loopwright-|@$", "", unit.stem) for unit in UNITS}
    services = {name.removesuffix("-1") for name in read()["services"] if not name.endswith("-2")}
    others = {"postgres", "certificate", "worker-gpu", "prometheus", "grafana"}
    assert names == services - others


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    folder = tmp_path / "units"
    shutil.copytree(SYSTEMD, folder)
    for unit in folder.glob("*.service"):  # the programs are not where the units expect them
        text = re.sub(r"^(ExecStart=)\S+", rf"\g<1>{sys.executable}", unit.read_text(), flags=re.M)
        unit.write_text(text)
    names = [unit.name.replace("@", "@8") for unit in UNITS]
    checked = subprocess.run(
        [program, "verify", "--man=no", *names, "loopwright.target"],
        env={"SYSTEMD_UNIT_PATH": f"{folder}:/lib/systemd/system"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    ours = [line for line in checked.stderr.splitlines() if "loopwright" in line]
    assert (checked.returncode, ours) == (0, []), checked.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    ("name", "manifest"),
    MANIFESTS,
    ids=[f"{n}-{m['kind']}-{m['metadata']['name']}" for n, m in MANIFESTS],
)
def test_a_manifest_follows_the_schema(name: str, manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


PODS = {
    manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
    for _, manifest in MANIFESTS
    if "template" in manifest.get("spec", {})
}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_confined_and_starts_commands_that_exist(name: str) -> None:
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert re.search(r":v?\d", container["image"])
        if container["image"].startswith("loopwright"):
            check_command(container["args"])
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        claims = {"data"}  # of the stateful set
        assert mounts <= {volume["name"] for volume in pod["volumes"]} | claims


def test_the_kustomization_has_what_the_manifests_name() -> None:
    kustomization = yaml.safe_load(KUSTOMIZATION.read_text(encoding="utf-8"))
    files = [file for source in kustomization["configMapGenerator"] for file in source["files"]]
    for path in (*kustomization["resources"], *files):
        assert (KUSTOMIZATION.parent / path).is_file(), path
    texts = {path: (KUSTOMIZATION.parent / path).read_text() for path in kustomization["resources"]}
    assert set(texts) == {f"kubernetes/{name}.yaml" for name, _ in MANIFESTS}
    used = set(re.findall(r"secretName: (\S+)", "".join(texts.values())))
    assert used <= {source["name"] for source in kustomization["secretGenerator"]}


def test_only_apis_and_coordinators_reach_the_database() -> None:
    policies = {m["metadata"]["name"]: m["spec"] for n, m in MANIFESTS if n == "network-policies"}
    (rule,) = policies["postgres"]["ingress"]
    (expression,) = rule["from"][0]["podSelector"]["matchExpressions"]
    assert expression["values"] == ["api", "coordinator"]
    assert policies["default"]["podSelector"] == {}
    assert policies["default"]["policyTypes"] == ["Ingress", "Egress"]
