//! Tests of rows from probes that were reached.

use crate::{
    events::{EVENT_PROBE, ProbeEvent},
    testing::{Bytes, Tables, exec, relative},
};

use crate::probe_list::{Argument, At, Kind, Probe, ProbeList, Request};

const TEXT_BYTES: usize = 128;

fn probe(at: At, arguments: &[(&str, Kind)]) -> Probe {
    let argument = |(name, kind): &(&str, Kind)| Argument { name: (*name).into(), kind: *kind, place: None };
    Probe { text: String::new(), at, arguments: arguments.iter().map(argument).collect() }
}

fn reached(at_ns: u64, tid: u32, probe: u16, values: &[i64], texts: &[&str]) -> Bytes {
    let fixed = ProbeEvent { at_ns, tid, probe, ..ProbeEvent::default() };
    let mut rest: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for text in texts {
        rest.extend(text.bytes());
        rest.resize(rest.len().div_ceil(8) * 8, 0);
        rest.resize(8 * values.len() + TEXT_BYTES * texts.len(), 0);
    }
    Bytes::of(EVENT_PROBE, &fixed).text(&rest)
}

fn shown(tables: &Tables, table: &str, columns: &str) -> Vec<String> {
    tables.show(table, columns).iter().map(|row| relative(row)).collect()
}

#[test]
fn arguments_are_what_their_types_say() {
    let arguments = [("small", Kind::I8), ("id", Kind::U32), ("query", Kind::Str), ("rest", Kind::U64)];
    let probe_list = ProbeList {
        probes: vec![probe(At::Usdt("/bin/db".into(), "db".into(), "query".into()), &arguments)],
        ..ProbeList::default()
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/db", "db\0"),
        reached(10, 7, 0, &[0x1ff, -1, 9, -1], &["a \"b\"\n"]),
        // The text could not be read.
        reached(20, 7, 0, &[1, 2, -14, 3], &[""]),
        // A probe that does not exist.
        reached(30, 7, 9, &[], &[]),
    ];
    let tables = Tables::with_places(&[&events], probe_list);
    let rows = shown(&tables, "probe_events", "ts_ns task_id probe kind place args");
    let expected = [
        r#"10 0 query usdt /bin/db {"small":-1,"id":4294967295,"query":"a \"b\"\n","rest":18446744073709551615}"#,
        r#"20 0 query usdt /bin/db {"small":1,"id":2,"query":null,"rest":3}"#,
    ];
    assert_eq!(rows, expected);
}

#[test]
fn requests_reach_from_a_function_to_its_return_or_from_one_id_to_the_next() {
    let of = |name: &str| At::Entry("/bin/db".into(), name.into());
    let probe_list = ProbeList {
        probes: vec![
            probe(of("serve"), &[("n", Kind::I32)]),
            probe(At::Return("/bin/db".into(), "serve".into()), &[("result", Kind::I64)]),
            probe(of("take"), &[("id", Kind::I64)]),
            probe(of("give"), &[("id", Kind::I64)]),
        ],
        requests: vec![
            Request { name: "serve".into(), begin: 0, end: 1 },
            Request { name: "take".into(), begin: 2, end: 3 },
            Request { name: "between".into(), begin: 3, end: 3 },
        ],
        stacks: false,
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/db", "db\0"),
        // An end without a beginning.
        reached(8, 7, 1, &[0], &[]),
        reached(10, 7, 0, &[1], &[]),
        // The function calls itself.
        reached(12, 7, 0, &[2], &[]),
        reached(15, 7, 1, &[-2], &[]),
        reached(20, 7, 1, &[-1], &[]),
        // Two requests at a time; the second ends first, in another thread.
        reached(30, 7, 2, &[100], &[]),
        reached(31, 7, 2, &[101], &[]),
        reached(35, 8, 3, &[101], &[]),
        reached(40, 7, 3, &[100], &[]),
        // A request that begins again before it ended, and one that never ends.
        reached(50, 7, 2, &[102], &[]),
        reached(60, 7, 2, &[102], &[]),
        reached(70, 7, 0, &[3], &[]),
    ];
    let tables = Tables::with_places(&[&events], probe_list);
    let rows = shown(&tables, "probe_requests", "ts_ns dur_ns task_id request args end_args");
    let expected = [
        r#"10 10 0 serve {"n":1} {"result":-1}"#,
        r#"31 4 0 take {"id":101} {"id":101}"#,
        r#"30 10 0 take {"id":100} {"id":100}"#,
        r#"50 - 0 take {"id":102} -"#,
        r#"35 - 1 between {"id":101} -"#,
        r#"40 - 0 between {"id":100} -"#,
        r#"60 - 0 take {"id":102} -"#,
        r#"70 - 0 serve {"n":3} -"#,
    ];
    assert_eq!(rows, expected);
}
