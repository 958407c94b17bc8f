-- Waiting for another program
-- The command waits for a program at the other end of a socket or pipe that is not part of it, on this machine or another.
-- needs:  critical_path, calls, processes, paths, stack_places, unanswered_requests
-- uses:   sockets
-- param:  min_share DOUBLE = 0.2          Minimum share of the time of the command that it waits.
-- param:  min_wait_ns BIGINT = 100000000  Minimum time that it waits [ns].
-- param:  min_trips BIGINT = 100          From so many round trips on they are many.
-- param:  short_ns BIGINT = 20000000      Round trips that take less on average are short [ns].
-- param:  waits_ns BIGINT = 100000       A poll that takes less does not wait [ns].
-- param:  connect_ns BIGINT = 100000000  A connection that takes more to be established is judged by network/connect [ns].
-- param:  again_ns BIGINT = 1000000      A poll that waits within this time after one that ran out goes on with its wait [ns].
-- column: subject VARCHAR       Who ended the waits: the name of a program of this machine, or network.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command that it waited [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it waited, along its critical path [ns].
-- column: gain_ns BIGINT        0: it serves others, and waits for what they want; empty: it depends on the other side, or on how much one round trip can carry [ns].
-- column: certainty VARCHAR     medium for many short round trips; else low.
-- column: variant VARCHAR       many (short round trips), reconnect (the same, most on a connection of their own), few (long ones), stream (it sent nothing before), or server.
-- column: process INTEGER       The process id of the one that waited longest.
-- column: explained_by VARCHAR  Rules whose findings explain this one: who has a lock waits for a peer meanwhile.
-- column: waits BIGINT          How often it waited.
-- column: mean_ns BIGINT        One wait, on average [ns].
-- column: trips BIGINT          Waits before which the thread had sent something.
-- column: object VARCHAR        The socket or pipe that took most of the time; of waits by poll and epoll what was polled, as far as it is known.
-- column: objects BIGINT        Number of them.
-- column: call VARCHAR          The call that took most of the time.
-- column: place VARCHAR         Where in the program it is made; `not known` where that was not recorded.
-- says: finding.many en    The command waits {cost_ns}, {value} of its time, for {subject}: {trips:round trip} one after another, {mean_ns} each, on {object}, in {call} ({place}).
-- says: finding.many ja    {subject} を {cost_ns}（実行時間の {value}）待っています。往復が 1 回ずつ順に {trips} 回、1 回あたり {mean_ns} です。{object:ja}、{call}（{place:ja}）。
-- says: finding.reconnect en    The command waits {cost_ns}, {value} of its time, for {subject}: {trips:round trip} one after another, {mean_ns} each, on {objects:connection}: most of them open a new one (connect). The longest is on {object}, in {call} ({place}).
-- says: finding.reconnect ja    {subject} を待つ時間が {cost_ns}（実行時間の {value}）あります。往復が 1 回ずつ順に {trips} 回、1 回あたり {mean_ns} で、接続は {objects} 個です。ほとんどの往復で新しい接続を確立しています（connect）。最も長いのは {object:ja} の {call}（{place:ja}）です。
-- says: finding.few en     The command waits {cost_ns}, {value} of its time, for {subject}: {trips:reply} took {mean_ns} each, on {object}, in {call} ({place}).
-- says: finding.few ja     {subject} を {cost_ns}（実行時間の {value}）待っています。応答は {trips} 回で、1 回あたり {mean_ns} かかっています。{object:ja}、{call}（{place:ja}）。
-- says: finding.stream en  The command waits {cost_ns}, {value} of its time, until {subject} sends or receives data: {waits:wait}, {mean_ns} each, on {object}, in {call} ({place}).
-- says: finding.stream ja  {subject} がデータを送るか受け取るのを {cost_ns}（実行時間の {value}）待っています。{waits} 回、1 回あたり {mean_ns} です。{object:ja}、{call}（{place:ja}）。
-- says: finding.server en  The command accepts connections and waits {cost_ns}, {value} of its time, for its clients.
-- says: finding.server ja  接続を受け付けるコマンドで、クライアントを {cost_ns}（実行時間の {value}）待っています。
-- says: ok en              The command waits {cost_ns}, {value} of its time, for sockets and pipes of other programs.
-- says: ok ja              ほかのプログラムとのソケットとパイプの待ちは {cost_ns}、実行時間の {value} です。
-- says: unknown en         The recording does not show when the threads of a command ran.
-- says: unknown ja         コマンドのスレッドの実行時刻が記録にありません。
-- at_least: duration min_wait_ns
-- evidence: time/waits --process {process}
-- tags:   time, processes, calls
WITH path AS (
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p
), waits AS (
    -- On the critical path, those that another recorded thread ended have no row: the path goes on with that one.
    -- Answers that did not come, and connections that came late or not at all, have rules of their own.
    SELECT p.task_id, p.ts_ns, p.dur_ns, p.call, p.path_id, p.stack_id, p.waker, p.cause
    FROM critical_path AS p
    LEFT JOIN unanswered_requests AS u ON u.task_id = p.task_id AND p.ts_ns > u.ts_ns AND p.ts_ns < u.until_ns
    WHERE u.task_id IS NULL AND NOT (coalesce(p.action, '') = 'connect' AND p.dur_ns >= $connect_ns) AND p.part = 'waiting' AND p.waker IS NOT NULL AND (p.cause IN ('socket', 'pipe') OR (p.cause = 'events'
        AND p.action = 'poll'))
), tasks AS (
    SELECT DISTINCT w.task_id FROM waits AS w
), polls AS (
    SELECT c.task_id, c.ts_ns, c.ts_ns + c.dur_ns AS until_ns, c.value
    FROM calls AS c INNER JOIN tasks AS t ON t.task_id = c.task_id
    WHERE c.action = 'poll'
        AND c.dur_ns >= $waits_ns
), limited AS (
    -- A poll that ran out, unless the next one waits on at once and finds something: then both wait for that.
    SELECT p.task_id, p.ts_ns, p.value, p.value = 0 AND (lag(p.value, 1, 0) OVER (PARTITION BY p.task_id ORDER BY p.ts_ns DESC) = 0
        OR lag(p.ts_ns, 1, 0) OVER (PARTITION BY p.task_id ORDER BY p.ts_ns DESC) - p.until_ns > $again_ns) AS ran_out
    FROM polls AS p
), marks AS (
    -- What was sent before a wait, and whether the wait was in a poll that ran out.
    SELECT c.task_id, c.ts_ns, 1 AS sent, 0 AS polled_ns, 0 AS limited_ns, 0 AS empty_ns, 0 AS ns, NULL AS call, NULL AS path_id, NULL AS stack_id, NULL AS waker, NULL AS cause
    FROM calls AS c INNER JOIN tasks AS t ON t.task_id = c.task_id
    WHERE c.class IN ('write', 'copy') AND coalesce(c.kind, '') IN ('socket', 'pipe') AND c.errno IS NULL
    UNION ALL
    SELECT l.task_id, l.ts_ns, 0, l.ts_ns, CASE WHEN l.value = 0 THEN l.ts_ns ELSE 0 END, CASE WHEN l.ran_out THEN l.ts_ns ELSE 0 END, 0, NULL, NULL, NULL, NULL, NULL FROM limited AS l
    UNION ALL
    SELECT w.task_id, w.ts_ns, 0, 0, 0, 0, w.dur_ns, w.call, w.path_id, w.stack_id, w.waker, w.cause FROM waits AS w
), counted AS (
    SELECT m.*, sum(m.sent) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns ROWS UNBOUNDED PRECEDING) AS sent_before,
        max(m.polled_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns ROWS UNBOUNDED PRECEDING) AS last_poll_ns,
        max(m.limited_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns ROWS UNBOUNDED PRECEDING) AS last_limited_ns,
        max(m.empty_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns ROWS UNBOUNDED PRECEDING) AS last_empty_ns
    FROM marks AS m
), ended AS (
    SELECT c.*, CASE WHEN c.sent_before > lag(c.sent_before, 1, 0) OVER (PARTITION BY c.task_id ORDER BY c.ts_ns) THEN 1 ELSE 0 END AS is_trip,
        -- An interrupt, and threads of the kernel that do its work: the sender is not on this machine.
        CASE WHEN c.waker IN ('interrupt', 'idle') OR regexp_extract(c.waker, '^(ksoftirqd|kworker|swapper|napi|irq)/') <> '' THEN 'network' ELSE c.waker END AS waker_or_network,
        CASE WHEN c.cause = 'events' AND c.last_poll_ns > 0 AND c.last_poll_ns = c.last_limited_ns THEN 1 ELSE 0 END AS is_part
    FROM counted AS c
    WHERE c.ns > 0 AND NOT (c.cause = 'events' AND c.last_poll_ns > 0 AND c.last_poll_ns = c.last_empty_ns)
), whose AS (
    -- A poll that ran out is a part of the wait that goes on.
    SELECT e.*, CASE WHEN e.is_part = 1 THEN lag(e.waker_or_network, 1, e.waker_or_network) OVER (PARTITION BY e.task_id ORDER BY e.ts_ns DESC)
        ELSE e.waker_or_network END AS peer
    FROM ended AS e
), by_object AS (
    SELECT e.peer, e.path_id, e.call, e.stack_id, e.task_id, sum(e.ns) AS ns, sum(1 - e.is_part) AS waits, sum(e.is_trip) AS trips
    FROM whose AS e
    GROUP BY e.peer, e.path_id, e.call, e.stack_id, e.task_id
), servers AS (
    SELECT DISTINCT t.process_id
    FROM calls AS c INNER JOIN processes AS t ON t.task_id = c.task_id
    WHERE c.action = 'accept' AND c.errno IS NULL
), by_peer AS (
    SELECT b.peer, sum(b.ns) AS ns, sum(b.waits) AS waits, sum(b.trips) AS trips, count(DISTINCT b.path_id) AS objects, arg_max(b.path_id, b.ns) AS path_id,
        arg_max(b.call, b.ns) AS call, arg_max(b.stack_id, b.ns) AS stack_id, arg_max(t.process_id, b.ns) AS process_id,
        arg_max(t.pid, b.ns) AS pid
    FROM by_object AS b INNER JOIN processes AS t ON t.task_id = b.task_id
    GROUP BY b.peer
), judged AS (
    SELECT b.*, p.all_ns, CASE WHEN s.process_id IS NOT NULL THEN 'server' WHEN 2 * b.trips < b.waits THEN 'stream'
        WHEN b.trips >= $min_trips AND b.ns < $short_ns * b.waits THEN CASE WHEN 2 * b.objects > b.trips THEN 'reconnect' ELSE 'many' END ELSE 'few' END AS variant
    FROM by_peer AS b
    CROSS JOIN path AS p
    LEFT JOIN servers AS s ON s.process_id = b.process_id
    WHERE b.ns >= $min_wait_ns AND b.ns >= $min_share * p.all_ns
), whole AS (
    SELECT p.all_ns, (SELECT coalesce(sum(b.ns), 0) FROM by_peer AS b) AS ns, (SELECT count(*) FROM judged) AS findings FROM path AS p
)
SELECT
    j.peer AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.all_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CASE WHEN j.variant = 'server' THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN j.variant IN ('many', 'reconnect') THEN 'medium' ELSE 'low' END AS certainty,
    j.variant,
    j.pid AS process,
    'locks/futexes,locks/file_locks,network/delayed_ack,network/connect' AS explained_by,
    CAST(j.waits AS BIGINT) AS waits,
    CAST(j.ns // greatest(j.waits, 1) AS BIGINT) AS mean_ns,
    CAST(j.trips AS BIGINT) AS trips,
    coalesce(CASE WHEN e.remote IS NOT NULL THEN concat(o.path, ' (', e.remote, ')') END, o.path, 'not known') AS object,
    j.objects,
    j.call,
    CASE WHEN s.source IS NULL THEN coalesce(s.function, 'not known') ELSE concat(s.function, ' ', regexp_extract(s.source, '[^/]*$')) END AS place
FROM judged AS j
LEFT JOIN paths AS o ON o.path_id = j.path_id
LEFT JOIN sockets AS e ON e.path_id = j.path_id
LEFT JOIN stack_places AS s ON s.stack_id = j.stack_id AND s.function IS NOT NULL
UNION ALL
SELECT
    NULL,
    CASE WHEN w.all_ns > 0 THEN 'ok' ELSE 'unknown' END,
    CASE WHEN w.all_ns > 0 THEN round(1e2 * w.ns / w.all_ns, 1) END,
    1e2 * $min_share,
    CASE WHEN w.all_ns > 0 THEN CAST(w.ns AS BIGINT) END,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM whole AS w
WHERE w.findings = 0
ORDER BY cost_ns DESC, subject
