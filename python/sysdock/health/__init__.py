"""Load on a file system: health checks by class, and single items."""
