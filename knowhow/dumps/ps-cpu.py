# CPU time of tasks
# Which processes and threads there were, and how much CPU time, memory and I/O each had used.
# reads:   tasks, stacks
# shows:   dump/tasks
# kernels: 6.1, 6.12
# cost:    low
