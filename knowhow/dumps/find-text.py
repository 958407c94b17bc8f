# Text in the memory of the kernel
# Where a text lies in memory: in a name, a message, a path. Memory of users is left out.
# kernels: 6.1, 6.12
# cost:    medium
# param:   text VARCHAR = NULL           The text.
# column:  address VARCHAR               Where it lies, in the direct map, in hexadecimal digits.
# column:  physical VARCHAR              The physical address.
# column:  around VARCHAR                The text that it is a part of, until its end.


def run(dump, text):
    for place in dump.search(text):
        yield f"{place.address:016x}", f"{place.physical:016x}", dump.text(place.address)
