# The last second before a kernel stopped
# What a flight recorder saw until the end, with the log of the kernel.
# reads:   panic, log, flight
# shows:   dump/last_second
# kernels: 6.1, 6.12
# cost:    low
