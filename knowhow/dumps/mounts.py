# Mounted file systems
# What was mounted where, as the first process saw it.
# reads:   mounts
# shows:   dump/mounts
# kernels: 6.1, 6.12
# cost:    low
