# What filled the memory
# Free memory, page cache, memory of processes and of the kernel, by the kernel's counters.
# reads:   memory
# shows:   dump/memory
# kernels: 6.1, 6.12
# cost:    low
