"""What runs in the scheduler, between requests and batches."""
