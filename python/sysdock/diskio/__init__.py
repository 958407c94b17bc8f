"""Performance of a PostgreSQL server on a disk, predicted by a model from measurements of the disk alone."""
