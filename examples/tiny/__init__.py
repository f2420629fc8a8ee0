"""The tiny models: one module a maker, and what their weights are made of."""
