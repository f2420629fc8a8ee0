"""One request at one engine, or at a pair of them."""
