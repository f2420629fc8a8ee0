"""Decisions of the router. Pure: frozen values in, frozen values out."""
