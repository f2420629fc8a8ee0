"""What is rendered and decided: frozen values in, text and plans out, nothing touched."""
