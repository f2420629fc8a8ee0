"""Tensor operations; each folder holds its reference and, where one exists, its kernel."""
