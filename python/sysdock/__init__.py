"""sysdock: a check-up for Linux systems."""

__version__ = "0.2.0"
