# The last second
# Which task came to a processor when, until the kernel stopped.
# reads:   tasks, stacks, panic
# shows:   dump/wakeups
# kernels: 6.1, 6.12
# cost:    low
