# Where the kernel stopped
# The task and the processor that stopped the kernel, with registers, taints and the words of the kernel.
# reads:   panic, log, stacks
# shows:   dump/panic
# kernels: 6.1, 6.12
# cost:    low
