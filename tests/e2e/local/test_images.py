"""The built images and the published claims, in the cluster of this machine."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local import toolchain
from local.images import load as loading
from local.images import tag
from local.settings import REPOSITORY, Settings, load
from local.shell import wait_until

NAMESPACE = "hypic-test-images"
PROOF = "import sglang, torch, hypic_engine; print(sglang.__version__, hypic_engine.__file__)"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def local(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "local", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def settings() -> Settings:
    found = load()
    assert found.existing_kubeconfig is None, "images are loaded into a cluster made here only"
    local("up")
    return found


@pytest.fixture(scope="module")
def images(settings: Settings) -> list[str]:  # noqa: ARG001 - the node has to be up
    return local("images").split()


def kubectl(settings: Settings, *words: str, text_in: str = "") -> str:
    program = toolchain.program(settings, "kubectl")
    done = subprocess.run(
        [program, "--kubeconfig", settings.kubeconfig, *words],
        input=text_in,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def namespace(settings: Settings) -> Iterator[str]:
    kubectl(settings, "create", "namespace", NAMESPACE)
    level = "pod-security.kubernetes.io/enforce=restricted"
    kubectl(settings, "label", "namespace", NAMESPACE, level)
    yield NAMESPACE
    kubectl(settings, "delete", "namespace", NAMESPACE, "--wait")


def archived(settings: Settings) -> dict[str, Any]:
    """Configuration of each image, by its name without the tag."""
    path = settings.cache / "images" / f"hypic-{tag.tag(REPOSITORY)}.tar"
    with tarfile.open(path) as tar:
        listed = json.load(tar.extractfile("manifest.json"))
        configs = {image["RepoTags"][0]: image["Config"] for image in listed}
        read = {name: json.load(tar.extractfile(config)) for name, config in configs.items()}
    return {Path(name).name.split(":")[0]: config["config"] for name, config in read.items()}


def test_three_images_of_one_tag_are_in_the_node(settings: Settings, images: list[str]) -> None:
    suffix = local("tag").strip()
    assert images == [f"localhost/hypic/{kind}:{suffix}" for kind in tag.KINDS]
    assert set(images) <= set(loading.loaded(settings))


def test_images_again_does_nothing(images: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "local", "images"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == images
    assert done.stderr == ""


@pytest.mark.usefixtures("images")
def test_every_image_says_what_it_is_and_runs_as_nobody(settings: Settings) -> None:
    configs = archived(settings)
    for kind in tag.KINDS:
        assert configs[kind]["User"] == "65532:65532"
        labels = configs[kind]["Labels"]
        assert labels["org.opencontainers.image.title"] == f"hypic-{kind}"
        assert labels["org.opencontainers.image.version"] == tag.tag(REPOSITORY)
        assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_a_restricted_pod_imports_sglang_from_the_published_claims(
    settings: Settings, images: list[str], namespace: str
) -> None:
    claims = local("publish", namespace).split()
    assert claims == ["hypic-engine-env", "hypic-models"]
    command = f"python3 -c '{PROOF}' && ls /models/tiny-qwen3.5/config.json && id -u"
    command += " && ! touch /opt/engine-env/x 2>/dev/null && ! touch /models/x 2>/dev/null"
    mounts = {"hypic-engine-env": "/opt/engine-env", "hypic-models": "/models"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                *(
                    {
                        "name": name,
                        "persistentVolumeClaim": {"claimName": name, "readOnly": True},
                    }
                    for name in claims
                ),
            ],
            "containers": [
                {
                    "name": "engine",
                    "image": images[-1],
                    "command": ["sh", "-c", command],
                    "securityContext": RESTRICTED,
                    "volumeMounts": [
                        {"name": "tmp", "mountPath": "/tmp"},
                        *(
                            {"name": name, "mountPath": path, "readOnly": True}
                            for name, path in mounts.items()
                        ),
                    ],
                }
            ],
        },
    }
    kubectl(settings, "apply", "-f", "-", text_in=json.dumps(pod))
    words = ("get", "pod", "engine", "-n", namespace, "-o", "jsonpath={.status.phase}")
    wait_until(
        lambda: kubectl(settings, *words) in {"Succeeded", "Failed"},
        what="the pod ended",
        deadline_s=120,
    )
    log = kubectl(settings, "logs", "engine", "-n", namespace).split()
    assert kubectl(settings, *words) == "Succeeded", log
    assert log == [
        "0.5.14",
        "/opt/hypic/site/hypic_engine/__init__.py",
        "/models/tiny-qwen3.5/config.json",
        "65532",
    ]


def test_claims_that_were_deleted_can_be_published_again(
    settings: Settings, namespace: str
) -> None:
    local("publish", namespace)
    kubectl(settings, "delete", "persistentvolumeclaim", "--all", "-n", namespace, "--wait")
    local("publish", namespace)
    fields = "jsonpath={.items[*].status.phase}"
    shown = kubectl(settings, "get", "persistentvolumeclaims", "-n", namespace, "-o", fields)
    assert shown == "Bound Bound"
