# Whether numbers agree
# Numbers that the kernel keeps twice, such as tasks by list and by id, and whether they agree.
# reads:   counts, tasks
# shows:   dump/counts
# kernels: 6.1, 6.12
# cost:    low
