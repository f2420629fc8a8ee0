"""The machine under the cluster: processes, mounts, network, kernel settings."""
