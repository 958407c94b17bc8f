# Caches of objects of the kernel
# Which objects of the kernel filled the memory, as slabtop shows it.
# reads:   memory
# shows:   dump/slabs
# kernels: 6.1, 6.12
# cost:    low
