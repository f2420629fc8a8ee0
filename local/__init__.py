"""A real Kubernetes, its images and its storage on one machine; not part of what is shipped."""
