"""The words router and engine agree on. Pure: standard library only."""
