"""`sysdock probe`: a small load, again and again, that says whether a file system is slower than usual."""
