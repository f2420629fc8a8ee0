"""Everything that touches SGLang."""
