"""What a PostgreSQL would get from a disk: its I/O as a model, from measurements of the disk alone."""
