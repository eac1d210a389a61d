"""The files of `deploy/` and the Dockerfile fit each other, and the program that they run."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from longthread.environment import IN_FILE
from longthread.server.app import create_app
from longthread.settings import Settings, variables

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
OURS = ("server-1", "server-2", "gateway")
SETTINGS = {name for names in variables().values() for name in names}


def is_setting(variable: str) -> bool:
    return variable.removesuffix(IN_FILE) in SETTINGS


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


@pytest.fixture
def manifest() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    return {each["kind"]: each for each in documents}


def test_compose_follows_its_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    checked = subprocess.run([*command, DEPLOY / "compose.yaml"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_workflows_follow_their_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    files = sorted((ROOT / ".github/workflows").glob("*.yml"))
    checked = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and len(files) > 1, checked.stdout


def test_compose_opens_nothing_beyond_this_machine(compose: Any) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert len(ports) == 2 and all(port.startswith("${LONGTHREAD_BIND:-127.0.0.1}:") for port in ports)
    assert all("network_mode" not in service for service in compose["services"].values())


def test_what_compose_runs_may_write_to_its_volume_alone(compose: Any) -> None:
    assert {*compose["services"]} == {*OURS, "postgres", "caddy"}
    for name in OURS:
        service = compose["services"][name]
        assert service["read_only"] and service["tmpfs"] == ["/tmp"] and service["cap_drop"] == ["ALL"]
        assert service["depends_on"] == {"postgres": {"condition": "service_healthy"}}
        assert "user" not in service and "privileged" not in service
    assert "pgdata:/var/lib/postgresql/data" in compose["services"]["postgres"]["volumes"]
    assert {"pgdata", "data"} <= {*compose["volumes"]}


def test_compose_asks_where_each_service_listens(compose: Any) -> None:
    port = Settings.of().port
    for name, number in (("server-1", port), ("server-2", port), ("gateway", 8766)):
        assert f"http://127.0.0.1:{number}/ready" in compose["services"][name]["healthcheck"]["test"][-1]
    about = compose["services"]["caddy"]["environment"]
    assert about["LONGTHREAD_SERVERS"] == f"server-1:{port} server-2:{port}"
    assert about["LONGTHREAD_GATEWAY"] == "gateway:8766"


def test_secrets_are_files_that_the_script_makes_and_keeps(compose: Any, tmp_path: Path) -> None:
    script = shutil.copy(DEPLOY / "make-secrets.sh", tmp_path)
    subprocess.run(["sh", script], check=True, capture_output=True)
    made = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()}
    assert {*made} == {*compose["secrets"]} == {Path(each["file"]).name for each in compose["secrets"].values()}
    assert made["database_url"] == f"postgresql://longthread:{made['postgres_password']}@postgres/longthread"
    assert made["llm_api_key"] == "" and len(made["secret_key"]) == 64
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()} == made
    for name in OURS:
        service = compose["services"][name]
        files = [value for variable, value in service["environment"].items() if variable.endswith(IN_FILE)]
        assert sorted(files) == sorted(f"/run/secrets/{secret}" for secret in service["secrets"])


def test_every_variable_is_one_that_is_read(compose: Any, manifest: dict[str, Any]) -> None:
    given = [name for service in OURS for name in compose["services"][service]["environment"]]
    given += [each["name"] for kind in ("Job", "Deployment") for each in _container(manifest[kind])["env"]]
    given += re.findall(r"(LONGTHREAD_\w+|LLM_\w+)=", DOCKERFILE)
    assert len(given) > 20 and [name for name in given if not is_setting(name)] == []
    interpolated = {*re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text("utf-8"))}
    example = re.findall(r"^#?(\w+)=", (DEPLOY / ".env.example").read_text("utf-8"), re.MULTILINE)
    assert len(example) > 5 and [name for name in example if not is_setting(name) and name not in interpolated] == []


def _container(document: Any) -> Any:
    [container] = document["spec"]["template"]["spec"]["containers"]
    return container


def test_the_manifest_has_two_servers_that_probes_watch(manifest: dict[str, Any], compose: Any) -> None:
    assert {*manifest} == {"Job", "Deployment", "Service", "PodDisruptionBudget"}
    deployment = manifest["Deployment"]["spec"]
    server = _container(manifest["Deployment"])
    paths = {probe: server[f"{probe}Probe"]["httpGet"]["path"] for probe in ("readiness", "liveness", "startup")}
    assert paths == {"readiness": "/ready", "liveness": "/health", "startup": "/health"}
    routes = create_app(Settings.of(source="demo", model="demo")).openapi()["paths"]
    assert {*paths.values()} <= {*routes}
    [port] = server["ports"]
    assert port["containerPort"] == Settings.of().port
    [served] = manifest["Service"]["spec"]["ports"]
    assert served["targetPort"] == port["name"] == server["readinessProbe"]["httpGet"]["port"]
    assert manifest["PodDisruptionBudget"]["spec"]["minAvailable"] < deployment["replicas"] == 2
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels == manifest["Service"]["spec"]["selector"]
    assert manifest["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert manifest["Job"]["spec"]["template"]["metadata"]["labels"] != labels


def test_job_and_servers_are_one_image_that_may_do_as_little(manifest: dict[str, Any], compose: Any) -> None:
    [user] = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.MULTILINE)
    images = {_container(manifest[kind])["image"] for kind in ("Job", "Deployment")}
    assert images == {"longthread"} and "${LONGTHREAD_IMAGE:-longthread}" in compose["services"]["server-1"]["image"]
    assert _container(manifest["Job"])["args"] == ["db", "upgrade"]
    assert _container(manifest["Deployment"])["args"] == ["serve"]
    for kind in ("Job", "Deployment"):
        pod = manifest[kind]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsUser"] == int(user) and pod["securityContext"]["runAsNonRoot"]
        about = _container(manifest[kind])["securityContext"]
        assert about["readOnlyRootFilesystem"] and about["allowPrivilegeEscalation"] is False
        assert about["capabilities"] == {"drop": ["ALL"]}
        mounted = {each["name"] for each in _container(manifest[kind])["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]} and pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "LONGTHREAD_PORT is a setting"


def test_the_image_is_built_of_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [extras] = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}
    [check] = re.findall(r"HEALTHCHECK .*\\\n    CMD (\[.*\])", DOCKERFILE)
    assert "/ready" in json.loads(check)[-1]
    assert DOCKERFILE.count("FROM ${BASE}") == 2 and "\nSTOPSIGNAL SIGTERM\n" in DOCKERFILE


def test_the_base_has_no_manuals_and_no_translations(tmp_path: Path) -> None:
    """With commands that write down what they are asked for."""
    asked = tmp_path / "asked"
    for name in ("mmdebstrap", "docker"):
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{asked}\n')
        command.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", DEPLOY / "make-base.sh", "trixie", "http://mirror"], check=True, env=path)
    lines = asked.read_text("utf-8").splitlines()
    for folder in ("doc", "man", "locale"):
        assert f"--dpkgopt=path-exclude=/usr/share/{folder}/*" in lines
    assert "--dpkgopt=path-include=/usr/share/doc/*/copyright" in lines
    suite = lines.index("trixie")
    assert lines[suite + 1].endswith("/base.tar") and lines[suite + 2] == "http://mirror"
    assert lines[-3:] == ["import", lines[suite + 1], "localhost/longthread-base"]


def test_the_image_is_not_sent_what_a_clone_keeps_to_itself() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert lines[1] == "*" and "**/.env" in lines and "**/*.db" in lines
    sent = {*_sent(lines)}
    assert {"src", "web", "pyproject.toml"} <= sent and {*_copied()} <= sent


def _sent(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("!"):
            name = line.removeprefix("!")
            assert (ROOT / name).exists(), name
            yield name


def _copied() -> list[str]:
    return re.findall(r"^COPY (\w+) ", DOCKERFILE, re.MULTILINE)


def test_the_unit_runs_a_server_that_may_write_to_its_folder_alone() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "longthread.service")
    service = unit["Service"]
    assert service["ExecStart"].endswith("/longthread serve") and service["ProtectSystem"] == "strict"
    assert service["DynamicUser"] == "yes" and service["StateDirectory"] == "longthread"
    assert service["Environment"] == f"LONGTHREAD_DATA_DIR={service['WorkingDirectory']}"
