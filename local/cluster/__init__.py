"""The processes of one Kubernetes node: what they are, how they start, how they end."""
