# Who waits for which lock
# Mutexes and rw-semaphores that tasks wait for, who holds each, and the task that all of a chain wait for.
# reads:   tasks, stacks, locks
# shows:   dump/locks
# kernels: 6.1, 6.12
# cost:    low
