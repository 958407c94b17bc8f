# Kernel stacks of tasks
# Where the tasks were in the kernel; tasks with the same stack are one row.
# reads:   tasks, stacks
# shows:   dump/stacks
# kernels: 6.1, 6.12
# cost:    low
