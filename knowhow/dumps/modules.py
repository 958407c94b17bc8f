# Loaded modules
# Which modules were loaded, how large they were, and which taint the kernel.
# reads:   modules
# shows:   dump/modules
# kernels: 6.1, 6.12
# cost:    low
