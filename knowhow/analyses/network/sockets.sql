-- Sockets and their peers
-- What each process transferred over a socket, with which peer, and how long it waited for the peer; the kernel's counters of TCP connections.
-- needs:  sockets, calls, processes
-- uses:   run_states
-- column: process VARCHAR       Program and process id.
-- column: protocol VARCHAR      tcp, udp, unix, or unknown.
-- column: local VARCHAR         Its own end.
-- column: remote VARCHAR        The other end.
-- column: peer VARCHAR          Program and process id at the other end, if it is recorded; if there are several, the first.
-- column: calls BIGINT          System calls on the socket.
-- column: read_bytes BIGINT     Bytes that they read [B].
-- column: written_bytes BIGINT  Bytes that they wrote [B].
-- column: call_ns BIGINT        Time in them [ns].
-- column: wait_ns BIGINT        Of this, time off CPU because the other end had to do something first [ns].
-- column: retransmits BIGINT    Segments retransmitted since the connection was established.
-- column: round_trip_ns BIGINT  Round-trip time, smoothed by the kernel [ns].
-- sums:   calls, read_bytes, written_bytes, call_ns, wait_ns
-- match:  process, protocol, peer
-- chart:  bars x=process y=wait_ns title="Time waiting for the peer" title_ja="通信相手を待った時間"
-- tags:   calls, bytes, time, processes
WITH used AS (
    SELECT c.path_id, c.process_id, count(*) AS calls, sum(c.dur_ns) AS call_ns,
        sum(CASE WHEN c.class = 'read' THEN c.transferred_bytes END) AS read_bytes,
        sum(CASE WHEN c.class = 'write' THEN c.transferred_bytes END) AS written_bytes
    FROM calls AS c INNER JOIN sockets AS s ON s.path_id = c.path_id
    GROUP BY c.path_id, c.process_id
), sent AS (
    -- sendfile and splice read a file and write to the socket.
    SELECT c.to_path_id AS path_id, c.process_id, count(*) AS calls, sum(c.dur_ns) AS call_ns, sum(c.transferred_bytes) AS written_bytes
    FROM calls AS c INNER JOIN sockets AS s ON s.path_id = c.to_path_id
    WHERE c.class = 'copy'
    GROUP BY c.to_path_id, c.process_id
), both_ways AS (
    SELECT u.path_id, u.process_id, u.calls, u.call_ns, u.read_bytes, u.written_bytes FROM used AS u
    UNION ALL
    SELECT t.path_id, t.process_id, t.calls, t.call_ns, NULL, t.written_bytes FROM sent AS t
), moved AS (
    SELECT b.path_id, b.process_id, sum(b.calls) AS calls, sum(b.call_ns) AS call_ns, sum(b.read_bytes) AS read_bytes,
        sum(b.written_bytes) AS written_bytes
    FROM both_ways AS b
    GROUP BY b.path_id, b.process_id
), waited AS (
    SELECT r.path_id, r.process_id, sum(r.wait_ns) AS wait_ns
    FROM run_states AS r
    WHERE r.cause = 'socket'
    GROUP BY r.path_id, r.process_id
), users AS (
    SELECT m.path_id, min(m.process_id) AS process_id FROM moved AS m GROUP BY m.path_id
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    s.protocol,
    s.local,
    s.remote,
    CASE WHEN q.task_id IS NOT NULL THEN concat(coalesce(q.comm, '?'), ' ', CAST(q.pid AS VARCHAR)) END AS peer,
    CAST(m.calls AS BIGINT) AS calls,
    CAST(m.read_bytes AS BIGINT) AS read_bytes,
    CAST(m.written_bytes AS BIGINT) AS written_bytes,
    CAST(m.call_ns AS BIGINT) AS call_ns,
    CAST(w.wait_ns AS BIGINT) AS wait_ns,
    s.retransmits,
    CASE WHEN s.remote IS NOT NULL THEN s.round_trip_ns END AS round_trip_ns
FROM moved AS m
INNER JOIN sockets AS s ON s.path_id = m.path_id
INNER JOIN processes AS p ON p.task_id = m.process_id
LEFT JOIN waited AS w ON w.path_id = m.path_id AND w.process_id = m.process_id
LEFT JOIN users AS u ON u.path_id = s.peer_path_id
LEFT JOIN processes AS q ON q.task_id = u.process_id
ORDER BY w.wait_ns DESC NULLS LAST, m.call_ns DESC, process, m.path_id
