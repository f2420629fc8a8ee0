"""A second HypicCluster, made with the chart, for stories that break and remove one."""

import subprocess

from .world import ROOT, World

SPARE_NAMESPACE = "hypic-e2e"
SPARE = "spare"
KEYS = "clients"
KEY = "sk-of-a-client"
VALUES = ROOT / "charts" / "hypic-cluster" / "ci" / "one-machine-values.yaml"


def values(world: World, engine_image: str, *, test_timeout_s: int) -> list[str]:
    """Arguments of helm: one engine and one router with these images."""
    given = {
        "prefill.replicas": 1,
        "router.replicas": 1,
        "router.apiKeysSecretRef.name": KEYS,
        "prefill.template.engine.image": engine_image,
        "test.image.repository": "localhost/hypic/router",
        "test.image.tag": world.tag,
        "test.timeoutSeconds": test_timeout_s,
    }
    assigned = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    return ["-f", str(VALUES), *assigned]


def install(
    world: World, engine_image: str, *, test_timeout_s: int
) -> subprocess.CompletedProcess[str]:
    """Install the chart, or upgrade it."""
    chosen = values(world, engine_image, test_timeout_s=test_timeout_s)
    done = world.helm(
        SPARE_NAMESPACE, "upgrade", "--install", SPARE, "charts/hypic-cluster", *chosen
    )
    assert done.returncode == 0, done.stderr
    return done
