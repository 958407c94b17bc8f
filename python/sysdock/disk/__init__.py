"""What is asked of several scans, and files that are broken on purpose."""
