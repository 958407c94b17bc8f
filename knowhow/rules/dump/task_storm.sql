-- Task storm
-- A crashed kernel with very many tasks of one name, or with many more runnable tasks than processors.
-- needs:  dump_tasks
-- param:  min_tasks BIGINT = 4000 > 0      Minimum number of tasks of one name.
-- param:  min_share DOUBLE = 0.5 > 0       Minimum share of all tasks.
-- column: subject VARCHAR       Name of the tasks.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          How many of them there are.
-- column: limit_value DOUBLE    Threshold: reported from this number on.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where they were started by one process; medium else.
-- column: share DOUBLE          Share of all tasks that they are [ratio].
-- column: parents BIGINT        Processes that started them.
-- column: ready BIGINT          Those of them that ran or were ready to.
-- says: finding en  {value} tasks are named {subject}, {share} of all tasks. They were started by {parents:process}; runnable: {ready}.
-- says: finding ja  {subject} というタスクが {value} 個あり、全体の {share} です。起動したプロセス {parents} 個、実行可能 {ready} 個。
-- says: ok en  No name has {min_tasks} or more tasks and {min_share} or more of all tasks.
-- says: ok ja  {min_tasks} 個以上かつ全体の {min_share} 以上を占める名前のタスクはありません。
-- says: unknown en  The tasks in the dump could not be read.
-- says: unknown ja  ダンプのタスクを読み取れませんでした。
-- evidence: dump/tasks
-- tags:   processes
WITH names AS (
    SELECT
        t.comm,
        count(*) AS tasks,
        count(DISTINCT t.ppid) AS parents,
        CAST(sum(CASE WHEN t.state = 'R' THEN 1 ELSE 0 END) AS BIGINT) AS ready
    FROM dump_tasks AS t
    GROUP BY t.comm
), state AS (
    SELECT count(*) AS tasks FROM dump_tasks
)

SELECT
    n.comm AS subject,
    CASE WHEN n.comm IS NOT NULL THEN 'finding' WHEN s.tasks > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CAST(n.tasks AS DOUBLE) AS value,
    CAST($min_tasks AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN n.comm IS NULL THEN NULL WHEN n.parents = 1 THEN 'high' ELSE 'medium' END AS certainty,
    CASE WHEN n.comm IS NOT NULL THEN CAST(n.tasks AS DOUBLE) / s.tasks END AS share,
    n.parents,
    n.ready
FROM state AS s
LEFT JOIN names AS n ON n.tasks >= $min_tasks AND n.tasks >= $min_share * s.tasks
ORDER BY n.tasks DESC, n.comm
