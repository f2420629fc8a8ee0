"""Decisions of the operator. Pure."""
