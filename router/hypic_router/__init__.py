"""Segment-aware OpenAI-compatible router."""
