"""sysdock: a check-up for Linux systems."""

__version__ = "0.3.0"
