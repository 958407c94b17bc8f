# Requests in flight
# Requests that disks had not completed, how old they are, and what they read or write.
# reads:   requests
# shows:   dump/requests
# kernels: 6.1, 6.12
# cost:    low
