"""Kubernetes operator for HypicCluster."""
