-- Sockets of a crashed kernel
-- Sockets that processes had open: addresses, states, and data that had not been read or acknowledged.
-- needs:  dump_sockets
-- uses:   dump_tasks
-- question: sockets Sockets of processes
-- reads:  sockets, tasks
-- param:  family VARCHAR = ''       Only sockets of this family, such as inet; empty: all.
-- column: pid INTEGER              Process.
-- column: comm VARCHAR             Its name.
-- column: fd INTEGER               Descriptor.
-- column: family VARCHAR           inet, inet6, unix, netlink, packet, or a number.
-- column: kind VARCHAR             stream, datagram, raw, seqpacket, or a number.
-- column: protocol VARCHAR         tcp, udp, icmp, or a number.
-- column: state VARCHAR            established, listen, close wait and so on.
-- column: local VARCHAR            Its own address; for unix sockets, the path.
-- column: local_port INTEGER       Its own port.
-- column: remote VARCHAR           Address of the other end.
-- column: remote_port INTEGER      Port of the other end.
-- column: receive_bytes BIGINT     Received but not read [B].
-- column: unaccepted INTEGER       Connections of a listening socket that have not been accepted.
-- column: send_bytes BIGINT        Written but not acknowledged [B].
-- column: status VARCHAR           ok, or why something could not be read.
-- sums:   receive_bytes, send_bytes
-- match:  comm, family, protocol, state
-- tags:   processes, bytes
SELECT
    s.pid,
    t.comm,
    s.fd,
    s.family,
    s.kind,
    s.protocol,
    s.state,
    s.local,
    s.local_port,
    s.remote,
    s.remote_port,
    s.receive_bytes,
    s.unaccepted,
    s.send_bytes,
    s.status
FROM dump_sockets AS s
LEFT JOIN dump_tasks AS t ON t.pid = s.pid
WHERE $family = '' OR s.family = $family
ORDER BY coalesce(s.receive_bytes, 0) + coalesce(s.send_bytes, 0) DESC, s.pid, s.fd
