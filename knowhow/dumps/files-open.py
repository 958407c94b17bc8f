# Open files of processes
# Which files, pipes, sockets and devices each process had open.
# reads:   tasks, files
# shows:   dump/files
# kernels: 6.1, 6.12
# cost:    low
