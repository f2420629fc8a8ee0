"""Decisions of the router. Pure."""
