# Log of the kernel
# What the kernel wrote before it stopped, as dmesg prints it.
# reads:   log
# shows:   dump/log
# kernels: 6.1, 6.12
# cost:    low
