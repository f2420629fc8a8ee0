"""What is asked of pods over HTTP: a token, what is left of a drain, what they count."""
