"""What runs in the HTTP and tokenizer processes."""
