"""What the router knows of the fleet, for people and programs."""
