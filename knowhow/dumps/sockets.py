# Sockets of processes
# Sockets that processes had open, with addresses, states and unread bytes.
# reads:   sockets, tasks
# shows:   dump/sockets
# kernels: 6.1, 6.12
# cost:    low
