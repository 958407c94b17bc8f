"""Jobs of a cluster: the lake that their agents write, and questions about it."""
