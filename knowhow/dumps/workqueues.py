# Work queues
# What the workers of the kernel ran, and how much work waited for one.
# needs:   worker_pool_idr, worker_pool.busy_hash, worker.hentry
# kernels: 6.1, 6.12
# cost:    low
# column:  cpu INTEGER                   Processor of the pool; -1: it has none.
# column:  workers INTEGER               Workers of the pool.
# column:  idle INTEGER                  Those that have no work.
# column:  waiting BIGINT                Work that no worker has begun.
# column:  worker_pid INTEGER            A worker that has work.
# column:  queue VARCHAR                 Name of its queue.
# column:  work VARCHAR                  Function that it runs.
# column:  status VARCHAR                ok, or why something could not be read.


def run(dump):
    waiting, hash_entry = dump.offset("worker_pool", "worklist"), dump.offset("worker", "hentry")
    heads = [f"busy_hash[{place}].first" for place in range(64)]
    for pool in dump.read("worker_pool", dump.xarray("worker_pool_idr"), "cpu", "nr_workers", "nr_idle"):
        queued = dump.list("work_struct", pool.address + waiting, "entry").where(lambda row: row.status == "ok")
        known = (pool.cpu, pool.nr_workers, pool.nr_idle, len(queued))
        firsts = [first for first in dump.read("worker_pool", pool.address, *heads)[0][1:-1] if first]
        nodes = [node for first in firsts for node in dump.walk("hlist_node", first, "next")["address"] if node]
        busy = dump.read(
            "worker",
            [node - hash_entry for node in nodes],
            "task->pid",
            "current_func",
            queue="current_pwq->wq->name",
        )
        for worker in busy:
            function = worker.current_func and dump.function(worker.current_func)
            yield *known, worker.pid, worker.queue, function and function.split("+")[0], worker.status
        if not len(busy):
            yield *known, None, None, None, pool.status
