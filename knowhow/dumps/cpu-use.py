# What the processors did
# What each processor ran, how many tasks were ready, and where its time went since the boot.
# reads:   tasks, processors
# shows:   dump/cpus
# kernels: 6.1, 6.12
# cost:    low
