use std::time::Duration;

use serde_json::Value;
use sysdock_bpf::live::WaitedLock;

use super::{
    devices,
    locks::by_name,
    processes::parse_stat,
    screen::{Key, keys_of},
    table::{Cell, Chosen, Column, Table, Unit, cut},
};

const COLUMNS: [Column; 4] = [
    Column::new("pid", "PID", Unit::Plain, 7),
    Column::new("cpu_s", "CPU%", Unit::Seconds, 6),
    Column::new("read_bytes", "READ", Unit::Bytes, 6),
    Column::new("command", "COMMAND", Unit::Text, 10),
];

fn table(rows: Vec<Vec<Cell>>) -> Table {
    let interval = Duration::from_secs(2);
    let nothing = "nothing is there";
    Table { view: "process", columns: &COLUMNS, sort: "cpu_s", interval, rows, lost: 0, note: None, nothing }
}

fn row(pid: u64, cpu_ns: u64, bytes: Cell, name: &[u8]) -> Vec<Cell> {
    vec![Cell::Whole(pid), Cell::seconds(cpu_ns), bytes, Cell::name(name)]
}

fn some() -> Table {
    table(vec![
        row(1, 20_000_000, Cell::Whole(3 << 20), b"quiet"),
        row(2, 2_000_000_000, Cell::Missing, b"busy"),
        row(3, 20_000_000, Cell::Whole(0), b"Also quiet"),
    ])
}

#[test]
fn rows_are_shown_for_a_second_and_the_largest_first() {
    let lines = some().lines(&Chosen::default(), 40, 10);
    assert_eq!(
        lines,
        [
            "    PID   CPU%   READ COMMAND",
            "      2  100.0      - busy",
            "      3    1.0      0 Also quiet",
            "      1    1.0   1.5M quiet",
        ]
    );
    assert_eq!(some().lines(&Chosen::default(), 40, 1).len(), 2);
}

#[test]
fn rows_are_chosen_by_name_and_sorted_by_any_column() {
    let chosen = Chosen { sort: Some("read_bytes".into()), filter: "QUIET".into() };
    let json: Value = serde_json::from_str(&some().json(&chosen, None)).unwrap();
    let pids: Vec<_> = json["rows"].as_array().unwrap().iter().map(|row| row["pid"].as_u64()).collect();
    assert_eq!((pids, &json["units"]["read_bytes"], json["rows_total"].as_u64()), (vec![Some(1), Some(3)], &"B".into(), Some(2)));
    let none = Chosen { filter: "no such".into(), ..Chosen::default() };
    assert_eq!(some().lines(&none, 40, 9), ["nothing has this in its name"]);
    assert_eq!(table(Vec::new()).lines(&Chosen::default(), 40, 9), ["nothing is there"]);
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_the_ends_of_names() {
    let lines = table(vec![row(7, 0, Cell::Whole(0), b"/a/long/path")]).lines(&Chosen::default(), 18, 9);
    assert_eq!(lines, ["    PID COMMAND", "      7 <long/path"]);
    assert_eq!((cut("日本", 3), cut("abc", 2)), ("日".to_string(), "ab".to_string()));
}

#[test]
fn names_do_nothing_to_the_terminal() {
    let lines = table(vec![row(7, 0, Cell::Whole(0), "\x1b[2J\n\u{202e}x".as_bytes())]).lines(&Chosen::default(), 200, 9);
    assert!(lines[1].ends_with(" \\u{1b}[2J\\n\\u{202e}x"), "{lines:?}");
}

#[test]
fn keys_are_letters_and_a_few_others() {
    assert_eq!(keys_of(b"/ab\x7f\r"), [Key::Letter('/'), Key::Letter('a'), Key::Letter('b'), Key::Backspace, Key::Enter]);
    assert_eq!(
        (keys_of(b"\x1b"), keys_of(b"\x1b[A"), keys_of(b"\x03")),
        (vec![Key::Escape], vec![Key::Other], vec![Key::Interrupt])
    );
    assert_eq!(keys_of(b""), []);
}

#[test]
fn what_the_kernel_writes_is_read() {
    let stat = b"42 (a) b) R 1 2 3 4 -1 6 7 8 9 10 50 25 13 14 15 16 3 18 777 20";
    let process = parse_stat(stat, 100).unwrap();
    assert_eq!((&process.name[..], process.threads, process.start), (&b"a) b"[..], 3, 777));
    assert_eq!((process.counts.cpu_ns, process.counts.major_faults), (750_000_000, 9));
    assert!(parse_stat(b"42 (cut", 100).is_none() && parse_stat(b"42 (cut) R 1", 100).is_none());
    let (name, counts) = devices::parse(" 254 0 vda 5 1 16 2 7 0 8 3 1 40 50 0 0 0 0").unwrap();
    assert_eq!((name.as_str(), counts.reads, counts.read_bytes, counts.writes, counts.written_bytes), ("vda", 5, 8192, 7, 4096));
    assert_eq!((counts.requests_ms, counts.in_flight, counts.busy_ms, counts.weighted_ms), (5, 1, 40, 50));
    assert!(devices::parse(" 254 0 vda 5 1").is_none());
}

#[test]
fn locks_of_one_name_are_one_row() {
    let lock = |name: &str, wait_ns, waiter: &[u8]| WaitedLock {
        name: name.into(),
        kind: "mutex",
        waits: 2,
        wait_ns,
        longest_ns: wait_ns / 2,
        waiter: waiter.to_vec(),
        ..WaitedLock::default()
    };
    let mut sums = by_name(vec![lock("a", 10, b"one"), lock("b", 1, b"two"), lock("a", 30, b"three")]);
    sums.sort_by_key(|(sum, _)| sum.name.clone());
    let (sum, number) = &sums[0];
    assert_eq!((sum.waits, sum.wait_ns, sum.longest_ns, &sum.waiter[..], *number), (4, 40, 15, &b"three"[..], 2));
    assert_eq!((sums.len(), sums[1].1), (2, 1));
}
