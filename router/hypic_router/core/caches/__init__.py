"""What is known of engines' caches: what each holds, how hot that is, how full they are."""
