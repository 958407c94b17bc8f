# Tasks that hang
# Tasks that wait and cannot be killed (state D), for how long, and what they wait for.
# reads:   tasks, stacks, locks
# shows:   dump/hung
# kernels: 6.1, 6.12
# cost:    low
