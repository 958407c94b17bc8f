-- Request latency
-- How long requests of each kind took: count, mean, percentiles, maximum. Requests come from --request, or are received by a server from sockets.
-- needs:  requests
-- column: request VARCHAR    Name of the request; `socket`: on accepted connections.
-- column: requests BIGINT    Requests with an end.
-- column: unfinished BIGINT  Requests without an end.
-- column: avg_ns BIGINT      Mean [ns].
-- column: min_ns BIGINT      The shortest [ns].
-- column: p50_ns BIGINT      Half of them took at most this [ns].
-- column: p90_ns BIGINT      90 % took at most this [ns].
-- column: p99_ns BIGINT      99 % took at most this [ns].
-- column: p999_ns BIGINT     99.9 % took at most this [ns].
-- column: longest_ns BIGINT  The longest [ns].
-- chart:  ranges x=request y=min_ns,p50_ns,p90_ns,p99_ns,p999_ns,longest_ns y_scale=log title="Request latency" title_ja="リクエストの所要時間"
-- tags:   time, processes
WITH ranked AS (
    SELECT q.request, q.dur_ns,
        CASE WHEN q.dur_ns IS NOT NULL THEN row_number() OVER (PARTITION BY q.request ORDER BY q.dur_ns) END AS place,
        count(q.dur_ns) OVER (PARTITION BY q.request) AS total
    FROM requests AS q
)
SELECT
    r.request,
    count(r.dur_ns) AS requests,
    count(*) - count(r.dur_ns) AS unfinished,
    CAST(round(avg(r.dur_ns)) AS BIGINT) AS avg_ns,
    min(r.dur_ns) AS min_ns,
    min(CASE WHEN r.place * 2 >= r.total THEN r.dur_ns END) AS p50_ns,
    min(CASE WHEN r.place * 10 >= r.total * 9 THEN r.dur_ns END) AS p90_ns,
    min(CASE WHEN r.place * 100 >= r.total * 99 THEN r.dur_ns END) AS p99_ns,
    min(CASE WHEN r.place * 1000 >= r.total * 999 THEN r.dur_ns END) AS p999_ns,
    max(r.dur_ns) AS longest_ns
FROM ranked AS r
GROUP BY r.request
ORDER BY requests DESC, r.request
