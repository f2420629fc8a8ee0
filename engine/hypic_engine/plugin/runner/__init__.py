"""What runs inside the forward pass, and the memory that it reads."""
