"""Queries over several scans, and files that are fragmented on purpose."""
