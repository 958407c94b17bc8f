-- Tables of a lake of sysdock for ClickHouse: clickhouse-client --queries-file tables.sql
-- Columns, types and order are those of knowhow/tables. How to fill them: docs/howto/feed-a-monitoring-system.md
CREATE DATABASE IF NOT EXISTS sysdock;

CREATE TABLE sysdock.job_samples (
    "ts_ns" Int64,
    "interval_ns" Int64,
    "cluster" LowCardinality(String),
    "node" LowCardinality(String),
    "agent" LowCardinality(String),
    "sequence" Int64,
    "job_id" LowCardinality(Nullable(String)),
    "user" LowCardinality(Nullable(String)),
    "name" LowCardinality(Nullable(String)),
    "counter_group" LowCardinality(String),
    "target" LowCardinality(Nullable(String)),
    "file_system" LowCardinality(Nullable(String)),
    "read_bytes" Nullable(Int64),
    "written_bytes" Nullable(Int64),
    "reads" Nullable(Int64),
    "writes" Nullable(Int64),
    "opens" Nullable(Int64),
    "creates" Nullable(Int64),
    "closes" Nullable(Int64),
    "stats" Nullable(Int64),
    "readdirs" Nullable(Int64),
    "removes" Nullable(Int64),
    "renames" Nullable(Int64),
    "makes" Nullable(Int64),
    "attributes" Nullable(Int64),
    "syncs" Nullable(Int64),
    "errors" Nullable(Int64),
    "io_time_ns" Nullable(Int64),
    "io_wait_ns" Nullable(Int64),
    "cpu_ns" Nullable(Int64),
    "cpu_wait_ns" Nullable(Int64),
    "minor_faults" Nullable(Int64),
    "major_faults" Nullable(Int64),
    "disk_read_bytes" Nullable(Int64),
    "disk_written_bytes" Nullable(Int64),
    "memory_bytes" Nullable(Int64),
    "largest_process_bytes" Nullable(Int64),
    "processes" Nullable(Int64),
    "threads" Nullable(Int64),
    "ended_processes" Nullable(Int64)
) ENGINE = MergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Nano(ts_ns))
ORDER BY (cluster, job_id, node, ts_ns)
SETTINGS allow_nullable_key = 1;

CREATE TABLE sysdock.job_totals (
    "cluster" LowCardinality(String),
    "node" LowCardinality(String),
    "agent" LowCardinality(String),
    "sequence" Int64,
    "job_id" LowCardinality(Nullable(String)),
    "user" LowCardinality(Nullable(String)),
    "name" LowCardinality(Nullable(String)),
    "begun_ns" Int64,
    "ended_ns" Int64,
    "is_whole" Bool,
    "command" LowCardinality(Nullable(String)),
    "read_bytes" Int64,
    "written_bytes" Int64,
    "reads" Int64,
    "writes" Int64,
    "opens" Int64,
    "creates" Int64,
    "closes" Int64,
    "stats" Int64,
    "readdirs" Int64,
    "removes" Int64,
    "renames" Int64,
    "makes" Int64,
    "attributes" Int64,
    "syncs" Int64,
    "errors" Int64,
    "io_time_ns" Int64,
    "io_wait_ns" Int64,
    "cpu_ns" Int64,
    "cpu_wait_ns" Int64,
    "minor_faults" Int64,
    "major_faults" Int64,
    "disk_read_bytes" Int64,
    "disk_written_bytes" Int64,
    "memory_bytes" Nullable(Int64),
    "largest_process_bytes" Nullable(Int64),
    "ended_processes" Int64,
    "left_out_calls" Int64
) ENGINE = MergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Nano(ended_ns))
ORDER BY (cluster, job_id, node, ended_ns)
SETTINGS allow_nullable_key = 1;

CREATE TABLE sysdock.job_files (
    "cluster" LowCardinality(String),
    "node" LowCardinality(String),
    "agent" LowCardinality(String),
    "sequence" Int64,
    "job_id" LowCardinality(Nullable(String)),
    "user" LowCardinality(Nullable(String)),
    "name" LowCardinality(Nullable(String)),
    "ended_ns" Int64,
    "file_path" String,
    "target" LowCardinality(Nullable(String)),
    "calls" Int64,
    "read_bytes" Int64,
    "written_bytes" Int64,
    "io_time_ns" Int64,
    "error_ns" Int64
) ENGINE = MergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Nano(ended_ns))
ORDER BY (cluster, job_id, node, ended_ns)
SETTINGS allow_nullable_key = 1;

CREATE TABLE sysdock.agent_batches (
    "ts_ns" Int64,
    "interval_ns" Int64,
    "cluster" LowCardinality(String),
    "node" LowCardinality(String),
    "agent" LowCardinality(String),
    "sequence" Int64,
    "version" LowCardinality(String),
    "is_resumed" Bool,
    "jobs" Int64,
    "lost" Int64,
    "dropped_batches" Int64,
    "refused_batches" Int64,
    "waiting_batches" Int64,
    "cpu_ns" Int64,
    "memory_bytes" Int64
) ENGINE = MergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Nano(ts_ns))
ORDER BY (cluster, node, ts_ns)
SETTINGS allow_nullable_key = 1;
