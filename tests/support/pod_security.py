"""What the restricted Pod Security profile asks of a pod, as a list of what is missing."""

from typing import Any

ALLOWED_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
    | {"projected", "secret"}
)


def violations(pod_spec: dict[str, Any]) -> list[str]:
    """Each rule of the profile that a pod spec breaks; nothing when it is admitted."""
    pod = pod_spec.get("securityContext", {})
    found = [key for key in ("hostNetwork", "hostPID", "hostIPC") if pod_spec.get(key)]
    for volume in pod_spec.get("volumes", []):
        found += [f"volume {kind}" for kind in set(volume) - {"name"} - ALLOWED_VOLUMES]
    for container in pod_spec["containers"] + pod_spec.get("initContainers", []):
        own = pod | container.get("securityContext", {})
        name = container["name"]
        if own.get("runAsNonRoot") is not True or own.get("runAsUser") == 0:
            found.append(f"{name} may run as root")
        if own.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            found.append(f"{name} has no seccomp profile")
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            found.append(f"{name} may gain privileges")
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            found.append(f"{name} keeps capabilities")
        if any("hostPort" in port for port in container.get("ports", [])):
            found.append(f"{name} takes a port of the host")
    return found
