"""One watch an engine: asks whether it is ready, and follows what its cache holds."""
