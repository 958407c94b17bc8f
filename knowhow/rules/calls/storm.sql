-- System call storm
-- One kind of system call is made so often that it takes much of the time: each call is short, but there are very many of them.
-- needs:  calls, busy_loops, processes, totals
-- uses:   run_states, samples, stack_places, sockets, critical_path
-- param:  min_calls BIGINT = 5000          Minimum number of calls of a kind.
-- param:  min_share DOUBLE = 0.2           Minimum share of the elapsed time, without waits for a CPU, that they take.
-- param:  min_time_ns BIGINT = 50000000    Minimum time that they take [ns].
-- param:  longest_mean_ns BIGINT = 100000  Calls that take longer on average are not short [ns].
-- param:  entry_ns BIGINT = 60             What it costs to enter and leave the kernel, in addition to the duration of a call [ns].
-- param:  small_bytes BIGINT = 512         Messages below this are small [B].
-- column: subject VARCHAR       Program, process id (of several processes of the program how many), and call; of calls that go together, the two that take most time.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time, without waits for a CPU, that the calls of one thread took [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time of these calls, in the thread with most of it or in all processes of the program, without waits that are recorded [ns].
-- column: gain_ns BIGINT        Potential saving; 0: nothing says that they are needless [ns].
-- column: certainty VARCHAR     medium for calls that are seldom needed so often; else low.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: variant VARCHAR       clock, random, yield, signal, directory, identity, usage, link, memory, attributes, message, events, lock, failed or work.
-- column: process INTEGER       Process id; empty: several processes.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: calls BIGINT          Number of calls.
-- column: per_second BIGINT     How many per second.
-- column: mean_ns BIGINT        One of them, on average [ns].
-- column: bytes DOUBLE          Bytes that one transferred, on average [B].
-- column: failed BIGINT         Failed calls.
-- column: on VARCHAR            Object that most of them are on.
-- column: place VARCHAR         Where in the program most of them are made, by samples; `not known` without these.
-- says: finding.clock en      {subject}: {calls:system call} read the clock ({per_second} per second): {cost_ns}, {value} of the time. The C library can read it without a system call. Location: {place}.
-- says: finding.clock ja      {subject}: システムコールで時刻を {calls} 回（毎秒 {per_second} 回）取得し、{cost_ns}（時間の {value}）かかっています。C ライブラリならシステムコールなしで取得できます。場所: {place:ja}。
-- says: finding.random en     {subject}: {calls:call} fetch random numbers ({on}), {bytes} each: {cost_ns}, {value} of the time. Fetch some kilobytes at once, or use a generator in the program. Location: {place}.
-- says: finding.random ja     {subject}: 乱数（{on}）を 1 回 {bytes} ずつ {calls} 回取得し、{cost_ns}（時間の {value}）かかっています。まとめて取得するか、プログラム内の乱数生成器を使います。場所: {place:ja}。
-- says: finding.yield en      {subject}: {calls:call} yield the CPU ({per_second} per second): {cost_ns}, {value} of the time. Location: {place}.
-- says: finding.yield ja      {subject}: CPU を譲る呼び出しが {calls} 回（毎秒 {per_second} 回）あり、{cost_ns}（時間の {value}）かかっています。場所: {place:ja}。
-- says: finding.signal en     {subject}: {calls:call} send or set up signals ({per_second} per second): {cost_ns}, {value} of the time. Location: {place}.
-- says: finding.signal ja     {subject}: シグナルを送る、または準備する呼び出しが {calls} 回（毎秒 {per_second} 回）あり、{cost_ns}（時間の {value}）かかっています。場所: {place:ja}。
-- says: finding.directory en  {subject}: {calls:call} change or query the working directory: {cost_ns}, {value} of the time. Absolute paths or `openat` avoid them. Location: {place}.
-- says: finding.directory ja  {subject}: 作業ディレクトリを変更または取得する呼び出しが {calls} 回あり、{cost_ns}（時間の {value}）かかっています。パスか `openat` を使えば不要です。場所: {place:ja}。
-- says: finding.identity en   {subject}: {calls:call} query the identity of the process, which does not change: {cost_ns}, {value} of the time. Location: {place}.
-- says: finding.identity ja   {subject}: 変わることのないプロセスの情報を {calls} 回問い合わせ、{cost_ns}（時間の {value}）かかっています。場所: {place:ja}。
-- says: finding.usage en      {subject}: {calls:call} query CPU time, load or limits ({per_second} per second): {cost_ns}, {value} of the time. Query them less often. Location: {place}.
-- says: finding.usage ja      {subject}: 使用時間、負荷、制限を問い合わせる呼び出しが {calls} 回（毎秒 {per_second} 回）あり、{cost_ns}（時間の {value}）かかっています。問い合わせの間隔を空けます。場所: {place:ja}。
-- says: finding.link en       {subject}: {calls:call} read symbolic links, {failed} of them on paths that are not links: {cost_ns}, {value} of the time. Most frequent: {on}. Location: {place}.
-- says: finding.link ja       {subject}: シンボリックリンクを読む呼び出しが {calls} 回（うち {failed} 回はリンクではないもの）あり、{cost_ns}（時間の {value}）かかっています。最も多い対象: {on}。場所: {place:ja}。
-- says: finding.memory en     {subject}: {calls:call} change the memory map of the process ({per_second} per second): {cost_ns}, {value} of the time, plus page faults on the new memory. Location: {place}.
-- says: finding.memory ja     {subject}: プロセスのメモリマップを変更する呼び出しが {calls} 回（毎秒 {per_second} 回）あり、{cost_ns}（時間の {value}）かかっています。このほかに新しいメモリのページフォールトも起きます。場所: {place:ja}。
-- says: finding.attributes en {subject}: {calls:call} set file attributes: {cost_ns}, {value} of the time. Most frequent: {on}. Location: {place}.
-- says: finding.attributes ja {subject}: ファイルの属性を設定する呼び出しが {calls} 回あり、{cost_ns}（時間の {value}）かかっています。最も多い対象: {on}。場所: {place:ja}。
-- says: finding.message en    {subject}: {calls:call} transfer {bytes} each over a socket or pipe ({on}): {cost_ns}, {value} of the time. One call can transfer many messages. Location: {place}.
-- says: finding.message ja    {subject}: ソケットかパイプ（{on}）で 1 回 {bytes} ずつ、{calls} 回やり取りし、{cost_ns}（時間の {value}）かかっています。1 回の呼び出しでまとめて渡せます。場所: {place:ja}。
-- says: finding.events en     {subject}: {calls:call} wait for events or change the set of events: {cost_ns}, {value} of the time. Receive many events per call, and leave the set unchanged. Location: {place}.
-- says: finding.events ja     {subject}: イベントを問い合わせる、または監視対象を変更する呼び出しが {calls} 回あり、{cost_ns}（時間の {value}）かかっています。一度に多くのイベントを受け取り、監視対象は登録したままにします。場所: {place:ja}。
-- says: finding.lock en       {subject}: {calls:call} on locks of the program (futex), {per_second} per second: {cost_ns}, {value} of the time. Too many threads contend for one lock. Location: {place}.
-- says: finding.lock ja       {subject}: プログラムのロック（futex）の呼び出しが {calls} 回（毎秒 {per_second} 回）あり、{cost_ns}（時間の {value}）かかっています。多くのスレッドが 1 つのロックで競合しています。場所: {place:ja}。
-- says: finding.failed en     {subject}: {calls:call}, of which {failed} fail, take {cost_ns}, {value} of the time. A failed call does no work. Most frequent: {on}. Location: {place}.
-- says: finding.failed ja     {subject}: {calls} 回の呼び出しのうち {failed} 回が失敗し、{cost_ns}（時間の {value}）かかっています。失敗した呼び出しは何もしません。最も多い対象: {on}。場所: {place:ja}。
-- says: finding.work en       {subject}: {calls:call} of {mean_ns} each take {cost_ns}, {value} of the time. Most frequent: {on}. Location: {place}.
-- says: finding.work ja       {subject}: 1 回 {mean_ns} の呼び出しが {calls} 回あり、{cost_ns}（時間の {value}）かかっています。最も多い対象: {on}。場所: {place:ja}。
-- says: ok en                 No kind of short system call takes much of the time.
-- says: ok ja                 短い呼び出しのうち、時間の多くを占める種類はありません。
-- says: unknown en            The recording contains no system calls with durations.
-- says: unknown ja            所要時間のある呼び出しが記録にありません。
-- at_least: calls min_calls
-- at_least: thread_time min_time_ns
-- evidence: syscalls/latency
-- tags:   time, calls
WITH queued AS (
    SELECT sum(p.dur_ns) AS ns FROM critical_path AS p WHERE p.part = 'runnable'
), spent AS (
    -- Waits for a CPU say how busy the machine is, not what the command does.
    SELECT greatest(1, t.elapsed_ns - coalesce(q.ns, 0)) AS ns FROM totals AS t CROSS JOIN queued AS q
), counted AS (
    SELECT c.task_id, c.call, min(c.action) AS action, min(c.class) AS class, count(*) AS calls, sum(c.dur_ns) AS dur_ns, count(c.errno) AS failed,
        sum(c.transferred_bytes) AS bytes
    FROM calls AS c
    WHERE c.dur_ns IS NOT NULL AND c.via IS NULL
    GROUP BY c.task_id, c.call
), away AS (
    SELECT r.task_id, r.call, sum(r.dur_ns) AS ns FROM run_states AS r WHERE r.call IS NOT NULL GROUP BY r.task_id, r.call
), at_work AS (
    -- What a thread waits for in a call is a matter of other rules.
    SELECT n.task_id, n.call, n.action, n.class, n.calls, n.failed, n.bytes, greatest(0, n.dur_ns - coalesce(w.ns, 0)) AS dur_ns
    FROM counted AS n
    LEFT JOIN away AS w ON w.task_id = n.task_id AND w.call = n.call
), timed AS (
    SELECT n.task_id, n.call, n.action, n.class, n.calls, n.failed, n.bytes, n.dur_ns, n.dur_ns + n.calls * $entry_ns AS cost_ns
    FROM at_work AS n
    WHERE n.dur_ns <= n.calls * $longest_mean_ns
), named AS (
    -- Calls that go together, such as epoll_wait and epoll_ctl, count together.
    SELECT t.*,
        CASE
            WHEN t.action IN ('poll', 'watch') THEN 'events'
            WHEN t.action IN ('directory_change', 'directory_query') THEN 'directory'
            WHEN t.action IN ('protect', 'map', 'unmap', 'remap') THEN 'memory'
            ELSE t.call
        END AS family
    FROM timed AS t
), families AS (
    SELECT n.*, row_number() OVER (PARTITION BY n.task_id, n.family ORDER BY n.cost_ns DESC, n.call) AS place,
        sum(n.cost_ns) OVER (PARTITION BY n.task_id, n.family) AS family_ns
    FROM named AS n
), together AS (
    SELECT t.task_id, t.family, max(CASE WHEN t.place = 1 THEN t.call END) AS call, max(CASE WHEN t.place = 1 THEN t.action END) AS action, max(CASE WHEN t.place = 2 AND 10 * t.cost_ns >= t.family_ns THEN t.call END) AS second, min(t.class) AS class,
        CAST(sum(t.calls) AS BIGINT) AS calls, CAST(sum(t.failed) AS BIGINT) AS failed, CAST(sum(t.bytes) AS BIGINT) AS bytes,
        CAST(sum(t.dur_ns) AS BIGINT) AS dur_ns, CAST(sum(t.cost_ns) AS BIGINT) AS cost_ns
    FROM families AS t
    GROUP BY t.task_id, t.family
), by_thread AS (
    SELECT t.*, p.process_id, p.pid, p.comm, 1 AS processes FROM together AS t INNER JOIN processes AS p ON p.task_id = t.task_id
), by_program AS (
    -- Many processes of a program, one after the other, each with some of them.
    SELECT arg_max(t.task_id, t.cost_ns) AS task_id, t.family, arg_max(t.call, t.cost_ns) AS call, arg_max(t.action, t.cost_ns) AS action, arg_max(t.second, t.cost_ns) AS second, min(t.class) AS class,
        CAST(sum(t.calls) AS BIGINT) AS calls, CAST(sum(t.failed) AS BIGINT) AS failed, CAST(sum(t.bytes) AS BIGINT) AS bytes,
        CAST(sum(t.dur_ns) AS BIGINT) AS dur_ns, CAST(sum(t.cost_ns) AS BIGINT) AS cost_ns, arg_max(t.process_id, t.cost_ns) AS process_id, NULL AS pid, t.comm,
        count(DISTINCT t.process_id) AS processes
    FROM by_thread AS t
    GROUP BY t.comm, t.family
    HAVING count(DISTINCT t.process_id) > 1 AND 2 * max(t.cost_ns) < sum(t.cost_ns)
), worst AS (
    -- Of the threads of a process that with most of the time.
    SELECT t.*, row_number() OVER (PARTITION BY t.process_id, t.family ORDER BY t.processes DESC, t.cost_ns DESC, t.task_id) AS place
    FROM (SELECT * FROM by_thread UNION ALL SELECT * FROM by_program) AS t
    CROSS JOIN spent AS a
    -- Who does nothing about events need not receive more of them at once: calls/busy_loop.
    WHERE t.calls >= $min_calls AND t.cost_ns >= $min_time_ns AND t.cost_ns >= $min_share * a.ns
        AND NOT (t.family = 'events' AND t.task_id IN (SELECT b.task_id FROM busy_loops AS b WHERE b.kind = 'ready'))
), members AS (
    SELECT w.task_id, w.family, f.call FROM worst AS w INNER JOIN families AS f ON f.task_id = w.task_id AND f.family = w.family WHERE w.place = 1
), objects AS (
    SELECT m.task_id, m.family, c.path_id, min(c.path) AS path, min(c.kind) AS kind, count(*) AS calls
    FROM calls AS c
    INNER JOIN members AS m ON m.task_id = c.task_id AND m.call = c.call
    WHERE c.path_id IS NOT NULL
    GROUP BY m.task_id, m.family, c.path_id
), top_object AS (
    SELECT o.task_id, o.family, arg_max(coalesce(e.remote, e.local, o.path), o.calls) AS path, arg_max(o.kind, o.calls) AS kind
    FROM objects AS o
    LEFT JOIN sockets AS e ON e.path_id = o.path_id
    GROUP BY o.task_id, o.family
), answers AS (
    -- Reads of the same thread: where each message comes after one, it is an answer, which nobody waits with.
    SELECT w.task_id, w.family, count(*) AS reads
    FROM calls AS c
    INNER JOIN worst AS w ON w.task_id = c.task_id AND w.place = 1 AND w.class IN ('write', 'socket')
    WHERE c.class = 'read' AND coalesce(c.kind, '') IN ('socket', 'pipe')
    GROUP BY w.task_id, w.family
), sampled AS (
    SELECT m.task_id, m.family, concat(a.function, CASE WHEN a.source IS NOT NULL THEN concat(' ', regexp_extract(a.source, '[^/]*$')) ELSE '' END) AS place,
        count(*) AS number
    FROM samples AS s
    INNER JOIN members AS m ON m.task_id = s.task_id AND m.call = s.call
    INNER JOIN stack_places AS a ON a.stack_id = s.stack_id
    WHERE a.function IS NOT NULL
    GROUP BY m.task_id, m.family, a.function, a.source
), top_place AS (
    SELECT s.task_id, s.family, arg_max(s.place, s.number) AS place FROM sampled AS s GROUP BY s.task_id, s.family
), kinds AS (
    SELECT w.*, o.path AS on_path, l.place AS made_at,
        CASE
            WHEN w.action = 'clock' THEN 'clock'
            WHEN w.action = 'random' OR (w.class = 'read' AND coalesce(o.path, '') IN ('/dev/urandom', '/dev/random')) THEN 'random'
            WHEN w.action = 'yield' THEN 'yield'
            WHEN w.family IN ('directory', 'memory', 'events') THEN w.family
            WHEN w.action = 'identity' THEN 'identity'
            WHEN w.action = 'usage' THEN 'usage'
            WHEN w.action = 'link_read' THEN 'link'
            WHEN w.class = 'attr' THEN 'attributes'
            WHEN w.action = 'futex' THEN 'lock'
            WHEN w.class = 'signal' THEN 'signal'
            WHEN (w.class = 'socket' OR coalesce(o.kind, '') IN ('socket', 'pipe')) AND w.bytes > 0 AND w.bytes < $small_bytes * w.calls
                AND 2 * coalesce(r.reads, 0) < w.calls THEN 'message'
            WHEN 10 * w.failed >= 9 * w.calls THEN 'failed'
            ELSE 'work'
        END AS variant
    FROM worst AS w
    LEFT JOIN top_object AS o ON o.task_id = w.task_id AND o.family = w.family
    LEFT JOIN answers AS r ON r.task_id = w.task_id AND r.family = w.family
    LEFT JOIN top_place AS l ON l.task_id = w.task_id AND l.family = w.family
    WHERE w.place = 1
)
SELECT
    CASE WHEN k.call IS NOT NULL THEN concat(coalesce(k.comm, '?'), ' ', CASE WHEN k.processes > 1 THEN concat('(', CAST(k.processes AS VARCHAR), ' processes)') ELSE CAST(k.pid AS VARCHAR) END,
        ' ', k.call, CASE WHEN k.second IS NOT NULL THEN concat(', ', k.second) ELSE '' END) END AS subject,
    CASE WHEN k.call IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    CASE WHEN k.cost_ns > 0 THEN round(least(1e2, 1e2 * k.cost_ns / a.ns), 1) END AS value,
    1e2 * $min_share AS limit_value,
    CAST(k.cost_ns AS BIGINT) AS cost_ns,
    CAST(CASE k.variant WHEN 'work' THEN 0 ELSE k.cost_ns END AS BIGINT) AS gain_ns,
    CASE k.variant WHEN 'work' THEN 'low' WHEN 'memory' THEN 'low' WHEN 'lock' THEN 'low' ELSE CASE WHEN k.variant IS NOT NULL THEN 'medium' END END AS certainty,
    CAST(k.calls AS BIGINT) AS cost_calls,
    k.variant,
    k.pid AS process,
    CASE WHEN k.variant = 'work' THEN concat('processes/process_creation,io/failing_calls,io/metadata_cost,io/directory_stat,io/repeated_open,',
            'io/failed_lookups,io/rereads,io/seeks,io/sync_per_write,io/small_requests,io/shared_file,time/handover,time/polling')
        WHEN k.variant = 'failed' THEN 'io/failing_calls,io/failed_lookups,io/repeated_open'
        WHEN k.variant IS NOT NULL THEN 'locks/futexes,time/handover,time/polling,memory/new_memory,processes/process_creation,io/failing_calls,io/small_requests'
        END AS explained_by,
    k.calls,
    CAST(round(1e9 * k.calls / t.elapsed_ns) AS BIGINT) AS per_second,
    CAST(k.dur_ns // k.calls AS BIGINT) AS mean_ns,
    round(1e0 * k.bytes / k.calls, 1) AS bytes,
    k.failed,
    CASE WHEN k.call IS NOT NULL THEN coalesce(k.on_path, 'nothing with a name') END AS "on",
    CASE WHEN k.call IS NOT NULL THEN coalesce(k.made_at, 'not known') END AS place
FROM totals AS t
CROSS JOIN spent AS a
LEFT JOIN kinds AS k ON k.calls > 0
ORDER BY cost_ns DESC, subject
