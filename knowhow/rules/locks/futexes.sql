-- Contended locks of the program
-- Threads of a process wait for each other at a lock of the program, so that only one makes progress at a time.
-- needs:  run_states, critical_path, processes, totals
-- uses:   stack_places, environment
-- param:  min_share DOUBLE = 0.2        Minimum share of the elapsed time in which a thread waits for the lock.
-- param:  min_wait_ns BIGINT = 50000000 Minimum time in which one does [ns].
-- param:  min_passed DOUBLE = 0.5       Minimum share of the waits that end as another thread, which waits there too, passes the lock on.
-- param:  switch_ns BIGINT = 10000000   Python's threads wait for their interpreter in intervals of 5 ms; longer ones are something else [ns].
-- param:  again_ns BIGINT = 100000      A wait that begins within this time after one that ran out is the same wait [ns].
-- param:  min_hold_ns BIGINT = 5000000  Where the place is not known: who has the lock keeps it this long [ns].
-- param:  turn_ns BIGINT = 1000000      Who waits again within this time has not had its turn [ns].
-- column: subject VARCHAR       Program, process id and where it waits.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time in which at least one thread waits there, and the end of the command depends on it [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in which at least one thread waits there [ns].
-- column: gain_ns BIGINT        Potential saving, if these threads did not have to wait for each other, on the CPUs that the program leaves idle; empty for a queue, as not all of its waits are recognized [ns].
-- column: certainty VARCHAR     high where the memory of the lock says who has it; else medium.
-- column: variant VARCHAR       holds (who has the lock waits for something itself), runs (it computes), or queue (the place is not known: a lock, or a pool).
-- column: process INTEGER       Process id.
-- column: threads BIGINT        Threads that wait there.
-- column: waits BIGINT          Number of times.
-- column: threads_ns BIGINT     Time that they wait, all together [ns].
-- column: holder VARCHAR        Program and thread id that had it, or passed it on, at the end of the longest waits in all.
-- column: meanwhile VARCHAR     What these threads wait for most besides the lock.
-- column: meanwhile_ns BIGINT   How long they do, all together [ns].
-- says: finding.holds en  {subject}: {threads:thread} waited {waits:time} for a lock of the program (futex), {threads_ns} in total; at least one waited for {value} of the time. The thread that holds the lock waits as well, mostly for {meanwhile} ({meanwhile_ns} over all threads). The longest waits were for {holder}.
-- says: finding.holds ja  {subject}: {threads} 個のスレッドがプログラムのロック（futex）を {waits} 回、合計 {threads_ns} 待ちました。時間の {value} で、少なくとも 1 つが待っています。ロックを持つスレッド自身も待っており、主に{meanwhile:ja}の待ちです（全スレッドで {meanwhile_ns}）。最も長く待たせたのは {holder} です。
-- says: finding.runs en   {subject}: {threads:thread} waited {waits:time} for a lock of the program (futex), {threads_ns} in total; at least one waited for {value} of the time. The longest waits were for {holder}.
-- says: finding.runs ja   {subject}: {threads} 個のスレッドがプログラムのロック（futex）を {waits} 回、合計 {threads_ns} 待ちました。時間の {value} で、少なくとも 1 つが待っています。最も長く待たせたのは {holder} です。
-- says: finding.queue en  {subject}: {threads:thread} queued {waits:time} (futex), {threads_ns} in total; at least one queued for {value} of the time. They wait for something that one thread at a time can have: a lock, or an entry of a pool that is too small (connections, workers). The longest waits were for {holder}.
-- says: finding.queue ja  {subject}: {threads} 個のスレッドが順番待ち（futex）を {waits} 回、合計 {threads_ns} しました。時間の {value} で、少なくとも 1 つが待っています。一度に 1 つのスレッドしか使えないもの（ロック、または接続や作業スレッドが足りないプール）を待っています。最も長く待たせたのは {holder} です。
-- says: ok en             Threads rarely wait for each other at locks of the program.
-- says: ok ja             スレッドがプログラムのロックで互いを待つことはわずかです。
-- says: unknown en        The recording does not show when threads ran.
-- says: unknown ja        スレッドの実行時刻が記録にありません。
-- at_least: thread_time min_wait_ns
-- evidence: locks/futex_waits --process {process}
-- tags:   time, locks
WITH waited AS (
    -- Who waits with a limit and waits again at once has waited once.
    SELECT r.task_id, r.process_id, r.ts_ns, r.wait_ns, r.ts_ns + r.dur_ns AS until_ns, r.waker_task_id, r.holder_task_id, r.stack_id,
        r.waker_task_id IS NULL AND r.holder_task_id IS NULL AS ran_out
    FROM run_states AS r
    WHERE r.cause = 'lock' AND r.wait_ns > 0
), runs AS (
    SELECT w.*, CASE WHEN lag(w.ran_out, 1, false) OVER (PARTITION BY w.task_id ORDER BY w.ts_ns)
            AND w.ts_ns - lag(w.until_ns, 1, 0) OVER (PARTITION BY w.task_id ORDER BY w.ts_ns) <= $again_ns THEN 0 ELSE 1 END AS begins
    FROM waited AS w
), numbered AS (
    SELECT r.*, sum(r.begins) OVER (PARTITION BY r.task_id ORDER BY r.ts_ns) AS number FROM runs AS r
), joined AS (
    SELECT n.task_id, n.process_id, min(n.ts_ns) AS ts_ns, CAST(sum(n.wait_ns) AS BIGINT) AS wait_ns, arg_max(n.waker_task_id, n.ts_ns) AS waker_task_id,
        arg_max(n.holder_task_id, n.ts_ns) AS holder_task_id, arg_max(n.stack_id, n.wait_ns) AS stack_id, count(*) AS parts,
        max(CASE WHEN n.ran_out THEN 1 ELSE 0 END) = 1 AS ran_out
    FROM numbered AS n
    GROUP BY n.task_id, n.process_id, n.number
), placed AS (
    SELECT j.*, coalesce(CASE WHEN s.source IS NULL THEN s.function ELSE concat(coalesce(s.function, '?'), ' ', regexp_extract(s.source, '[^/]*$')) END, '') AS place,
        j.ran_out AND j.wait_ns <= j.parts * $switch_ns AND regexp_extract(coalesce(s.source, ''), '[.]py:') <> '' AS is_gil
    FROM joined AS j
    LEFT JOIN stack_places AS s ON s.stack_id = j.stack_id AND s.own
), interpreted AS (
    -- Threads that wait for each other's turn in an interpreter: one waits for its interval, and again, until the other lets go.
    SELECT p.task_id, p.waker_task_id AS other_id FROM placed AS p WHERE p.is_gil AND p.waker_task_id IS NOT NULL
    UNION
    SELECT p.waker_task_id, p.task_id FROM placed AS p WHERE p.is_gil AND p.waker_task_id IS NOT NULL
), partners AS (
    SELECT i.task_id, min(i.other_id) AS other_id FROM interpreted AS i GROUP BY i.task_id
), linked AS (
    SELECT p.*,
        CASE WHEN p.ts_ns - lag(p.ts_ns + p.wait_ns, 1, 0) OVER (PARTITION BY p.task_id ORDER BY p.ts_ns) > $turn_ns THEN p.ts_ns END AS begins_ns
    FROM placed AS p
), turns AS (
    -- Who has to wait again at once, has not had its turn.
    SELECT l.*, max(l.begins_ns) OVER (PARTITION BY l.task_id ORDER BY l.ts_ns ROWS UNBOUNDED PRECEDING) AS first_ns FROM linked AS l
), ends AS (
    -- When the thread that ended a wait had itself last waited, as far as that was ended by another.
    SELECT p.task_id AS of_task_id, p.ts_ns + p.wait_ns AS at_ns, p.ts_ns + p.wait_ns AS until_ns, NULL AS task_id, NULL AS first_ns, NULL AS stack_id
    FROM turns AS p
    WHERE p.waker_task_id IS NOT NULL
    UNION ALL
    SELECT p.waker_task_id, p.ts_ns + p.wait_ns, NULL, p.task_id, p.first_ns, p.stack_id
    FROM turns AS p
    WHERE p.waker_task_id IS NOT NULL AND p.holder_task_id IS NULL AND p.place = '' AND NOT p.is_gil
), after AS (
    SELECT e.of_task_id, e.task_id, e.first_ns, e.stack_id, e.at_ns,
        max(e.until_ns) OVER (PARTITION BY e.of_task_id ORDER BY e.at_ns ROWS UNBOUNDED PRECEDING) AS until_ns
    FROM ends AS e
), behind AS (
    -- Both waited at the same time; then one got on, kept what it had got for a while, and let the other one get on.
    SELECT DISTINCT a.task_id, a.first_ns, a.stack_id, a.of_task_id
    FROM after AS a
    WHERE a.task_id IS NOT NULL AND a.until_ns > a.first_ns AND a.at_ns - a.until_ns >= $min_hold_ns
), passers AS (
    SELECT DISTINCT b.of_task_id AS task_id FROM behind AS b
), passed_at AS (
    SELECT DISTINCT b.stack_id FROM behind AS b INNER JOIN passers AS p ON p.task_id = b.task_id
), queue AS (
    -- The last one passes nothing on; it waits where the others do.
    SELECT DISTINCT b.task_id, b.first_ns
    FROM behind AS b
    LEFT JOIN passers AS p ON p.task_id = b.task_id
    LEFT JOIN passed_at AS a ON a.stack_id = b.stack_id
    WHERE p.task_id IS NOT NULL OR a.stack_id IS NOT NULL
), waits AS (
    -- A wait that ran out may have found the interpreter free: it was for the other thread as well. Where the place is not known, only the lock's own
    -- memory tells a lock from the end of a thread or from new work.
    SELECT p.task_id, p.process_id, p.ts_ns, p.wait_ns, CASE WHEN p.is_gil THEN coalesce(p.waker_task_id, o.other_id) ELSE p.waker_task_id END AS waker_task_id,
        p.holder_task_id, CASE WHEN i.task_id IS NOT NULL OR (p.is_gil AND o.task_id IS NOT NULL) THEN 'interpreter lock (GIL)'
            WHEN q.task_id IS NOT NULL THEN '(queue)' ELSE p.place END AS place
    FROM turns AS p
    LEFT JOIN queue AS q ON q.task_id = p.task_id AND q.first_ns = p.first_ns
    LEFT JOIN partners AS o ON o.task_id = p.task_id
    LEFT JOIN interpreted AS i ON i.task_id = p.task_id AND i.other_id = p.waker_task_id
    WHERE (p.waker_task_id IS NOT NULL AND p.place <> '') OR p.holder_task_id IS NOT NULL OR q.task_id IS NOT NULL OR i.task_id IS NOT NULL OR (p.is_gil AND o.task_id IS NOT NULL)
), waiters AS (
    SELECT DISTINCT w.process_id, w.place, w.task_id FROM waits AS w
), passed AS (
    -- Whether the lock came from a thread that itself waits there at other times, and not from one that only has work for the others. Where the
    -- place is not known, only the lock's own memory can tell.
    SELECT w.*, CASE WHEN w.holder_task_id IS NOT NULL OR w.place = '(queue)' OR (o.task_id IS NOT NULL AND w.place <> '') THEN 1 ELSE 0 END AS is_passed,
        coalesce(w.holder_task_id, w.waker_task_id) AS from_task_id
    FROM waits AS w
    LEFT JOIN waiters AS o ON o.process_id = w.process_id AND o.place = w.place AND o.task_id = w.waker_task_id AND o.task_id <> w.task_id
), grouped AS (
    SELECT p.process_id, p.place, count(DISTINCT p.task_id) AS threads, count(*) AS waits, sum(p.wait_ns) AS threads_ns,
        count(p.holder_task_id) AS held
    FROM passed AS p
    GROUP BY p.process_id, p.place
    HAVING count(DISTINCT p.task_id) >= CASE WHEN p.place = '(queue)' THEN 3 ELSE 2 END AND sum(p.is_passed) >= $min_passed * count(*)
), marks AS (
    SELECT w.process_id, w.place, w.ts_ns AS at_ns, 1 AS wait, 0 AS path FROM waits AS w
    UNION ALL
    SELECT w.process_id, w.place, w.ts_ns + w.wait_ns, -1, 0 FROM waits AS w
    UNION ALL
    SELECT w.process_id, w.place, c.ts_ns, 0, 1 FROM critical_path AS c INNER JOIN waiters AS w ON w.task_id = c.task_id
    UNION ALL
    SELECT w.process_id, w.place, c.ts_ns + c.dur_ns, 0, -1 FROM critical_path AS c INNER JOIN waiters AS w ON w.task_id = c.task_id
), counted AS (
    -- How many wait there from each moment to the next, and whether the end of the command depends on one of these threads meanwhile. For each
    -- lock both sums begin and end at zero.
    SELECT m.process_id, m.place, m.at_ns - lag(m.at_ns, 1, m.at_ns) OVER (ORDER BY m.process_id, m.place, m.at_ns, m.wait, m.path) AS ns,
        sum(m.wait) OVER (ORDER BY m.process_id, m.place, m.at_ns, m.wait, m.path ROWS UNBOUNDED PRECEDING) - m.wait AS waiting,
        sum(m.path) OVER (ORDER BY m.process_id, m.place, m.at_ns, m.wait, m.path ROWS UNBOUNDED PRECEDING) - m.path AS on_path
    FROM marks AS m
), unions AS (
    SELECT c.process_id, c.place, sum(CASE WHEN c.waiting > 0 AND c.on_path > 0 THEN c.ns ELSE 0 END) AS ns
    FROM counted AS c
    GROUP BY c.process_id, c.place
), from_whom AS (
    -- Who made the others wait longest.
    SELECT p.process_id, p.place, p.from_task_id, row_number() OVER (PARTITION BY p.process_id, p.place ORDER BY sum(p.wait_ns) DESC, p.from_task_id) AS rank
    FROM passed AS p
    GROUP BY p.process_id, p.place, p.from_task_id
), holders AS (
    SELECT f.process_id, f.place, f.from_task_id AS task_id FROM from_whom AS f WHERE f.rank = 1
), else_by_cause AS (
    SELECT w.process_id, w.place, r.cause, sum(r.wait_ns) AS ns
    FROM waiters AS w
    INNER JOIN run_states AS r ON r.task_id = w.task_id
    WHERE r.cause IS NOT NULL AND r.cause <> 'lock' AND r.wait_ns > 0
    GROUP BY w.process_id, w.place, r.cause
), elsewhere AS (
    SELECT e.process_id, e.place, arg_max(e.cause, e.ns) AS cause, max(e.ns) AS ns FROM else_by_cause AS e GROUP BY e.process_id, e.place
), machine AS (
    SELECT max(CAST(e.value AS BIGINT)) AS cpus
    FROM environment AS e
    WHERE e.section = 'cpu' AND e.name = 'online' AND regexp_extract(e.value, '^[0-9]+$') <> ''
), idle AS (
    -- Where the program fills the CPUs, a thread that has the lock at once waits for a CPU instead.
    SELECT greatest(0, 1 - coalesce(sum(p.user_ns + p.system_ns) / (1e0 * max(t.elapsed_ns) * max(m.cpus)), 0)) AS idle
    FROM processes AS p CROSS JOIN totals AS t CROSS JOIN machine AS m
), judged AS (
    SELECT g.*, u.ns, t.elapsed_ns, concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS program, p.pid,
        concat(coalesce(h.comm, '?'), ' ', CAST(h.tid AS VARCHAR)) AS holder, e.cause, e.ns AS cause_ns, i.idle
    FROM grouped AS g
    INNER JOIN unions AS u ON u.process_id = g.process_id AND u.place = g.place
    INNER JOIN processes AS p ON p.task_id = g.process_id
    INNER JOIN holders AS o ON o.process_id = g.process_id AND o.place = g.place
    INNER JOIN processes AS h ON h.task_id = o.task_id
    LEFT JOIN elsewhere AS e ON e.process_id = g.process_id AND e.place = g.place
    CROSS JOIN totals AS t
    CROSS JOIN idle AS i
    WHERE u.ns >= $min_wait_ns AND u.ns >= $min_share * t.elapsed_ns
), whole AS (
    SELECT count(*) AS states FROM run_states AS r
)
SELECT
    CASE WHEN j.place IS NOT NULL THEN concat(j.program, CASE WHEN j.place NOT IN ('', '(queue)') THEN concat(' ', j.place) ELSE '' END) END AS subject,
    CASE WHEN j.place IS NOT NULL THEN 'finding' WHEN w.states = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e2 * j.ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CASE WHEN j.place <> '(queue)' THEN CAST(round(j.ns * (1 - 1e0 / j.threads) * j.idle) AS BIGINT) END AS gain_ns,
    CASE WHEN j.place IS NOT NULL THEN CASE WHEN 2 * j.held >= j.waits THEN 'high' ELSE 'medium' END END AS certainty,
    CASE WHEN j.place IS NOT NULL THEN CASE WHEN j.place = '(queue)' THEN 'queue' WHEN 2 * coalesce(j.cause_ns, 0) >= j.ns THEN 'holds' ELSE 'runs' END END AS variant,
    j.pid AS process,
    j.threads,
    j.waits,
    CAST(j.threads_ns AS BIGINT) AS threads_ns,
    j.holder,
    CASE WHEN j.place IS NOT NULL THEN coalesce(j.cause, 'nothing') END AS meanwhile,
    CAST(coalesce(j.cause_ns, 0) AS BIGINT) AS meanwhile_ns
FROM whole AS w
LEFT JOIN judged AS j ON w.states > 0
ORDER BY cost_ns DESC, subject
