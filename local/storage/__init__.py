"""What pods read but images do not carry: the engine's environment and the tiny model."""
