"""Position-independent caching for hybrid-attention models. Importing this changes nothing."""
