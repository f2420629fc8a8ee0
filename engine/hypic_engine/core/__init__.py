"""Bookkeeping of the segment cache in plain Python. Pure: no torch, no SGLang."""
