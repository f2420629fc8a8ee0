"""Images: their tag, their base, building them, and bringing them into the node."""
