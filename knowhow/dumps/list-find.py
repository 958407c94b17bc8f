# Structures of a list
# Goes along any list of the kernel, and shows what you name of each structure in it.
# needs:   types
# kernels: 6.1, 6.12
# cost:    medium
# param:   structure VARCHAR = NULL      Type of the structures, such as task_struct.
# param:   head VARCHAR = NULL           Head of the list: a symbol, or an address such as 0xffff888003a10000.
# param:   member VARCHAR = NULL         The list_head in each structure.
# param:   show VARCHAR = ''             Members to show, with commas between them, such as pid,comm.
# column:  place BIGINT                  Place in the list.
# column:  address VARCHAR               Where the structure lies, in hexadecimal digits.
# column:  members VARCHAR               Members and their values.
# column:  status VARCHAR                ok, or why it, or the rest of the list, could not be read.


def run(dump, structure, head, member, show):
    start = int(head, 16) if head.startswith("0x") else dump.symbol(head)
    found = dump.list(structure, start, member)
    names = [name.strip() for name in show.split(",") if name.strip()]
    for place, row in enumerate(dump.read(structure, found, *names)):
        values = [f"{name}={value}" for name, value in zip(names, row[1:-1], strict=True)]
        yield place, f"{row.address:016x}", " ".join(values), row.status
    for row in found.where(lambda row: row.status != "ok"):
        yield None, None, None, row.status
