//! Tests of the grammar and of the sample logs.

use super::*;
use crate::fields::{NotACall, Returned, TextRanges};

const BUFFERS: &str = include_str!("../../../../testdata/truss/buffers.aerw.truss");
const THREADS: &str = include_str!("../../../../testdata/truss/threads.fldDE.truss");
const STRUCTURES: &str = include_str!("../../../../testdata/truss/structures.fvxu.truss");
const GAPS: &str = include_str!("../../../../testdata/truss/gaps.lD.truss");

fn layout(letters: &str) -> Layout {
    Layout::given(Columns::from_letters(letters).unwrap())
}

fn detected(log: &str) -> Layout {
    Layout::detect(log.lines().map(str::as_bytes)).0
}

fn detect(log: &str) -> (Columns, bool) {
    let layout = detected(log);
    (layout.columns, layout.certain)
}

fn columns(letters: &str) -> Columns {
    Columns::from_letters(letters).unwrap()
}

fn kinds(log: &str) -> Vec<Kind> {
    let layout = detected(log);
    let each = |line: &str| {
        let (prefix, event) = split(line.as_bytes(), &layout);
        kind(event, &prefix)
    };
    log.lines().map(each).collect()
}

/// A call with all its parts, as truss prints it.
struct Call<'a> {
    name: &'a [u8],
    arguments: Vec<&'a [u8]>,
    returned: Returned<'a>,
    second: Option<i64>,
    error: Option<i32>,
    privilege: Option<&'a [u8]>,
    argc: Option<i64>,
}

fn read(event: &[u8]) -> Result<Call<'_>, NotACall> {
    let mut places = TextRanges::default();
    let call::Rest { second, error, privilege, argc } = parse(event, &mut places)?;
    let call = Box::leak(Box::new(places)).call(event);
    let arguments = call.arguments.iter().collect();
    Ok(Call { name: call.name, arguments, returned: call.returned, second, error, privilege, argc })
}

fn call(event: &str) -> (Vec<String>, Call<'_>) {
    let call = read(event.as_bytes()).unwrap_or_else(|e| panic!("{event}: {e:?}"));
    (call.arguments.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect(), call)
}

#[test]
fn every_prefix_form_leaves_the_call() {
    let event = "close(3)\t\t\t\t\t= 0";
    let none = Prefix::default();
    let cases = [
        ("", "", none),
        ("712:\t", "", Prefix { pid: Some(712), ..none }),
        ("/3:\t", "", Prefix { lwp: Some(3), ..none }),
        ("7/1:\t\t", "", Prefix { pid: Some(7), lwp: Some(1), ..none }),
        ("12345/1:\t", "", Prefix { pid: Some(12345), lwp: Some(1), ..none }),
        ("12345/1@2:\t", "", Prefix { pid: Some(12345), lwp: Some(1), thread: Some(2), ..none }),
        ("/1:     ", "", Prefix { lwp: Some(1), ..none }),
        (" 0.0012\t", "d", Prefix { stamp_ns: Some(1_200_000), ..none }),
        ("12.3456\t", "D", Prefix { since_last_ns: Some(12_345_600_000), ..none }),
        ("-1.9999\t", "D", Prefix { since_last_ns: Some(-100_000), ..none }),
        (
            "7/1:\t\t 1.0000\t 0.5000\t 0.0001\t",
            "dDE",
            Prefix {
                pid: Some(7),
                lwp: Some(1),
                stamp_ns: Some(1_000_000_000),
                since_last_ns: Some(500_000_000),
                system_cpu_ns: Some(100_000),
                ..none
            },
        ),
        (
            "/1:      1.0000  0.0001 ",
            "dE",
            Prefix { lwp: Some(1), stamp_ns: Some(1_000_000_000), system_cpu_ns: Some(100_000), ..none },
        ),
    ];
    for (prefix, letters, expected) in cases {
        let line = format!("{prefix}{event}");
        assert_eq!(split(line.as_bytes(), &layout(letters)), (expected, event.as_bytes()), "{prefix:?}");
    }
    for line in ["12:34 x", "/:\tx", "1/:\tx", "99999999999:\tx", "1@:\tx"] {
        assert_eq!(split(line.as_bytes(), &layout("")), (none, line.as_bytes()), "{line}");
    }
}

#[test]
fn a_line_without_columns_keeps_its_event() {
    let (prefix, event) = split(b"7/1:\t\tread(0, 0x08062E40, 1)\t(sleeping...)", &layout("dD"));
    assert_eq!((prefix.stamp_ns, kind(event, &prefix)), (None, Kind::Sleeping));
    let (prefix, event) = split(b"7/1:\t\t\tfd=4  ev=POLLIN rev=0", &layout("dD"));
    assert_eq!((event, kind(event, &prefix)), (&b"\tfd=4  ev=POLLIN rev=0"[..], Kind::Continuation));
    let (prefix, event) = split(b"12345/1:\t\tfd=4  ev=POLLIN rev=0", &layout("dD"));
    assert_eq!(kind(event, &prefix), Kind::Continuation);
}

#[test]
fn events_are_distinguished() {
    let cases: [(&str, Kind); 39] = [
        ("Base time stamp:  1201557122.3823  [ Mon Jan 28 ]", Kind::Base),
        ("Base time stamp:", Kind::Unknown),
        ("read(3, \" a\", 1)\t= 1", Kind::Call),
        ("sys#240(0x00000001)\t= 0", Kind::Call),
        ("read(3, 0x08062E40, 1)\t(sleeping...)", Kind::Sleeping),
        ("vfork()\t\t(waiting for child to exit()/exec()...)", Kind::Waiting),
        ("fork1()\t\t(returning as child ...)\t= 1", Kind::Returning),
        ("lwp_create()\t(returning as new lwp ...)\t= 0", Kind::Returning),
        ("unlink(\"(returning as child ...)\")\t= 0", Kind::Call),
        ("_exit(3)", Kind::Exit),
        ("lwp_exit()", Kind::LwpExit),
        ("    Received signal #14, SIGALRM, in read() [caught]", Kind::Signal),
        ("    Incurred fault #6, FLTBOUNDS  %pc = 0x0001", Kind::Fault),
        ("    Stopped by signal #24, SIGTSTP, in read()", Kind::Stopped),
        ("    Continued with signal #25, SIGCONT [default]", Kind::Continued),
        ("Received signal #14, SIGALRM [caught]", Kind::Signal),
        ("      siginfo: SIGALRM", Kind::Continuation),
        ("\t*** process killed ***", Kind::Killed),
        ("\t*** cannot trace across exec() of /usr/bin/su ***", Kind::Notice),
        ("    *** SUID: ruid/euid/suid = 100 / 0 / 0  ***", Kind::Notice),
        ("psargs: /usr/bin/ksh -o vi", Kind::Psargs),
        (" argv: ls -l", Kind::Argv),
        (" envp: A=1", Kind::Envp),
        ("  LANG=C", Kind::Continuation),
        ("-> libc:malloc(0x10, 0x20)", Kind::Function),
        ("      <- libc:malloc() = 0x80671c8", Kind::Function),
        ("     0x08063010: \"/etc/hosts\"", Kind::Pointed),
        ("\tfd=4  ev=POLLIN rev=0", Kind::Continuation),
        ("\t       user time: 0.010000 sec", Kind::Continuation),
        ("sfv_fd=3\tsfv_flag=0x0\tsfv_off=0\tsfv_len=10", Kind::Continuation),
        ("   h e l l o\\n", Kind::Dump),
        ("  00FFC3\\t", Kind::Dump),
        ("           f o u r   b l a n k s", Kind::Dump),
        ("(Warning: no matching active LWPs found, waiting)", Kind::Notice),
        ("syscall               seconds   calls  errors", Kind::Summary),
        ("", Kind::Continuation),
        ("    d=0x04780000 i=4195  m=0100644 l=1  u=100   g=10    sz=1024", Kind::Continuation),
        ("    bsz=8192  blks=2     fs=ufs", Kind::Continuation),
        ("hello world", Kind::Unknown),
    ];
    for (event, expected) in cases {
        assert_eq!(kind(event.as_bytes(), &Prefix::default()), expected, "{event:?}");
    }
    assert_eq!(base(b"Base time stamp:  1201557122.3823  [ Mon Jan 28 ]"), Some(1_201_557_122_382_300_000));
    let timed = Prefix { stamp_ns: Some(0), ..Prefix::default() };
    for event in ["  00FFC3\\t", "\tfd=4", "  LANG=C"] {
        assert_eq!(kind(event.as_bytes(), &timed), Kind::Unknown, "with columns: {event:?}");
    }
    assert_eq!(kind(b"  -> libc:malloc(0x10)", &timed), Kind::Function);
}

#[test]
fn values_of_every_form() {
    let value = |event: &str| (call(event).1.returned.value, call(event).1.second);
    assert_eq!(value("close(3)\t\t\t\t\t= 0"), (Some(0), None));
    assert_eq!(value("stat64(\"/x\", 0x08047920) \t\t= 0"), (Some(0), None), "blanks before the tabs");
    assert_eq!(value("getpid()\t= 4711 [4710]"), (Some(4711), Some(4710)));
    assert_eq!(value("pipe()\t= 3 [4]"), (Some(3), Some(4)));
    assert_eq!(value("lwp_sigmask(SIG_SETMASK, 0x00, 0x00) = 0xFFBFFEFF [0xFFFFFFFF]"), (Some(0xFFBF_FEFF), Some(0xFFFF_FFFF)));
    assert_eq!(value("llseek(3, 0, SEEK_END)\t= 0x100000001"), (Some(0x1_0000_0001), None));
    assert_eq!(value("umask(022)\t= 022"), (Some(0o22), None));
    assert_eq!(value("ioctl(3, TCGETA, 0x08047B10)\t= -1"), (Some(-1), None));
    assert_eq!(value("sigtimedwait(0x08047B90, 0x08047C10, 0x00000000) = SIGALRM"), (None, None));
    assert_eq!(value("fork1()\t\t(returning as child ...)\t= 812"), (Some(812), None));
    assert_eq!(value("setcontext(0x08047A10)"), (None, None));
    assert_eq!(value("vfork()\t\t(waiting for child to exit()/exec()...)"), (None, None));
    let (arguments, exec) = call("execve(\"/usr/bin/ls\", 0x08047D74, 0x08047D80)  argc = 3");
    assert_eq!((arguments.len(), exec.returned.value, exec.argc), (3, Some(0), Some(3)));
}

#[test]
fn errors_of_every_form() {
    let error = |event: &'static str| {
        let call = call(event).1;
        (call.error, call.returned.errno.map(String::from_utf8_lossy), call.privilege.map(String::from_utf8_lossy))
    };
    assert_eq!(error("open(\"/x\", O_RDONLY)\t\tErr#2 ENOENT"), (Some(2), Some("ENOENT".into()), None));
    assert_eq!(error("ioctl(1, 0x00005999, 0x00000000) Err#200"), (Some(200), Some("Err#200".into()), None));
    assert_eq!(
        error("chown(\"/x\", 100, 10)\t\tErr#1 EPERM [file_chown]"),
        (Some(1), Some("EPERM".into()), Some("file_chown".into()))
    );
    assert_eq!(error("kill(1, SIGHUP)\t\tErr#250 [ALL]"), (Some(250), Some("Err#250".into()), Some("ALL".into())));
    assert_eq!(error("execve(\"/x\", 0x1, 0x2)\tErr#7 E2BIG"), (Some(7), Some("E2BIG".into()), None));
}

#[test]
fn strings_hide_what_looks_like_an_end() {
    let cases: [(&str, &[&str]); 10] = [
        ("open(\"a) = 3, b\", O_RDONLY)\t= 4", &["\"a) = 3, b\"", "O_RDONLY"]),
        ("open(\"a\\\", \\\"b\", O_RDONLY)\t= 4", &["\"a\\\", \\\"b\"", "O_RDONLY"]),
        ("open(\"back\\\", O_RDONLY)\t= 4", &["\"back\\\"", "O_RDONLY"]),
        ("open(\"bare\"quote\", O_RDONLY)\t= 4", &["\"bare\"quote\"", "O_RDONLY"]),
        ("write(1, \" x \" ,   5 )   =   5\\n\", 11)\t= 11", &["1", "\" x \" ,   5 )   =   5\\n\"", "11"]),
        ("read(3, \" O r a c l e   S o l a r\".., 512)\t= 17", &["3", "\" O r a c l e   S o l a r\"..", "512"]),
        ("write(1, \"\\0\\0 \"\", 3)\t= 3", &["1", "\"\\0\\0 \"\"", "3"]),
        ("pipe([4,5], O_CLOEXEC)\t= 0", &["[4,5]", "O_CLOEXEC"]),
        ("fcntl(3, F_SETFL, (no flags))\t= 0", &["3", "F_SETFL", "(no flags)"]),
        ("getpid()\t= 7 [1]", &[]),
    ];
    for (event, expected) in cases {
        assert_eq!(call(event).0, expected, "{event}");
    }
    let (arguments, sleeping) = call("read(3, 0x08062E40, 512)\t(sleeping...)");
    assert_eq!((arguments.len(), sleeping.returned.value), (3, None));
    let (arguments, _) = call("mmap64(0x00000000, 8192, PROT_READ, MAP_PRIVATE, 3, 0) = 0xFEF00000");
    assert_eq!(arguments.len(), 6);
}

#[test]
fn strings_are_unescaped() {
    assert_eq!(string(br#""/a b""#).unwrap().as_ref(), b"/a b");
    assert_eq!(string(br#""a \"b\".txt""#).unwrap().as_ref(), b"a \"b\".txt");
    assert_eq!(string(br#""\xc3\xa4\xffffffc3\x0a\n""#).unwrap().as_ref(), b"\xc3\xa4\xc3\n\\n");
    assert_eq!(string(br#""back\""#).unwrap().as_ref(), b"back\\");
    assert_eq!(string(br#""\x+1\x""#).unwrap().as_ref(), b"\\x+1\\x");
    assert_eq!((string(b"0x08062E40"), string(b"\""), string(b"")), (None, None, None));
}

#[test]
fn cut_lines_are_refused() {
    let cases = ["read(3, \"abc", "read", "close(3)", "close(3)\t=", "close(3)\tErr#", "close(3)\t= 0x", "close(3)\t= 0 [1", "("];
    for event in cases {
        assert!(read(event.as_bytes()).is_err(), "{event}");
    }
    assert_eq!(read(b"close(3)\t= 0 (note)").err().unwrap(), NotACall::NoReturn, "the last parenthesis ends the arguments");
    assert_eq!(read(b"close(3)\t= 0 note").err().unwrap(), NotACall::Trailing);
}

#[test]
fn signals_say_number_name_call_and_action() {
    let expected = Signal { number: 14, name: b"SIGALRM", call: Some(b"read"), action: Some(b"caught") };
    assert_eq!(signal(b"    Received signal #14, SIGALRM, in read() [caught]"), Some(expected));
    let expected = Signal { number: 25, name: b"SIGCONT", call: None, action: Some(b"default") };
    assert_eq!(signal(b"    Continued with signal #25, SIGCONT [default]"), Some(expected));
    let expected = Signal { number: 6, name: b"FLTBOUNDS", call: None, action: None };
    assert_eq!(signal(b"    Incurred fault #6, FLTBOUNDS  %pc = 0x08050C3A"), Some(expected));
}

#[test]
fn columns_are_found_in_logs() {
    assert_eq!(detect(THREADS), (columns("dDE"), true));
    assert_eq!(detect(BUFFERS), (columns(""), true));
    assert_eq!(detect(STRUCTURES), (columns(""), true));
    assert_eq!(detect(GAPS), (columns("D"), true), "by the sleeping thread");
}

/// A log of the same events with the given columns.
fn synthetic(letters: &str, base: bool) -> String {
    let columns = columns(letters);
    let mut log = String::from(if base { "Base time stamp:  1201557122.3823  [ x ]\n" } else { "" });
    let mut now = 0;
    for (number, gap) in [20, 3, 1, 7, 2, 2, 15, 1, 9, 4, 30, 5].into_iter().enumerate() {
        now += gap;
        log += "/1:\t";
        for (given, value) in [(columns.stamp, now), (columns.since_last, gap), (columns.system_cpu, gap / 3)] {
            if given {
                log += &format!("{:2}.{:04}\t", value / 10_000, value % 10_000);
            }
        }
        log += &format!("close({number})\t\t\t\t\t= 0\n");
    }
    log
}

#[test]
fn columns_are_distinguished_where_the_log_allows() {
    for letters in ["", "d", "dD", "dE", "dDE"] {
        assert_eq!(detect(&synthetic(letters, letters.contains('d'))), (columns(letters), true), "{letters}");
        assert_eq!(detect(&synthetic(letters, false)), (columns(letters), true), "{letters}, base line cut off");
    }
    assert_eq!(detect(&synthetic("DE", false)), (columns("DE"), true));
    assert_eq!(detect(&synthetic("D", false)), (columns("D"), false));
    assert_eq!(detect(&synthetic("E", false)), (columns("D"), false), "the one that only the user can know");
    let slept = "/1:\tread(0, 0x08062E40, 1)\t(sleeping...)\n/1:\t 0.0001\tread(0, \" a\", 1)\t= 1\n";
    assert_eq!(detect(&(synthetic("E", false) + slept)), (columns("E"), true));
    assert_eq!(Columns::from_letters("EdD"), Some(columns("dDE")));
    assert_eq!((Columns::from_letters("dd"), Columns::from_letters("f")), (None, None));
}

#[test]
fn totals_of_the_log_with_threads() {
    let layout = detected(THREADS);
    let (mut calls, mut errors, mut bytes_read, mut written, mut cpu, mut others) = (0, 0, 0, 0, 0, Vec::new());
    for line in THREADS.lines() {
        let (prefix, event) = split(line.as_bytes(), &layout);
        match kind(event, &prefix) {
            Kind::Call => {
                let call = read(event).unwrap();
                calls += 1;
                errors += usize::from(call.error.is_some());
                cpu += prefix.system_cpu_ns.unwrap();
                match call.name {
                    b"read" => bytes_read += call.returned.value.unwrap_or(0),
                    b"write" | b"pwrite64" => written += call.returned.value.unwrap_or(0),
                    _ => {}
                }
            }
            other => others.push(other),
        }
    }
    // Counted by hand.
    assert_eq!((calls, errors, bytes_read, written, cpu), (18, 2, 17, 4096 + 300, 5_200_000));
    let count = |kind: Kind| others.iter().filter(|other| **other == kind).count();
    assert_eq!((count(Kind::Exit), count(Kind::LwpExit), count(Kind::Returning)), (3, 1, 3));
    assert_eq!((count(Kind::Sleeping), count(Kind::Waiting), count(Kind::Signal), count(Kind::Continuation)), (2, 1, 1, 1));
    assert_eq!(others.len(), 13, "and the base line");
}

#[test]
fn every_line_of_the_logs_is_known() {
    for log in [BUFFERS, THREADS, STRUCTURES, GAPS] {
        for (line, kind) in log.lines().zip(kinds(log)) {
            assert_ne!(kind, Kind::Unknown, "{line}");
        }
    }
    let dumps = kinds(BUFFERS).into_iter().filter(|kind| *kind == Kind::Dump).count();
    assert_eq!(dumps, 3 + 2 + 4, "reads of 79 bytes, writes of 46 and 100");
    let functions = kinds(STRUCTURES).into_iter().filter(|kind| *kind == Kind::Function).count();
    assert_eq!(functions, 4);
}

fn feed(line: &[u8], layouts: &[Layout]) {
    for layout in layouts {
        let (prefix, event) = split(line, layout);
        let _ = (kind(event, &prefix), signal(event));
        if let Ok(call) = read(event) {
            call.arguments.iter().for_each(|argument| drop(string(argument)));
        }
    }
}

#[test]
fn no_bytes_panic() {
    let layouts = ["", "d", "dD", "dDE"].map(layout);
    for log in [BUFFERS, THREADS, STRUCTURES, GAPS] {
        for line in log.lines().map(str::as_bytes) {
            for end in 0..=line.len() {
                feed(&line[..end], &layouts);
                feed(&line[end..], &layouts);
            }
        }
    }
    let alphabet = b"\"\\,() =[]#/:@.-<>*_0123456789abcdefxEr\t \x00\x7f\xc3\r";
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    let mut lines = Vec::new();
    for _ in 0..20_000 {
        let start: &[u8] = [&b""[..], b"read(", b"open(\"", b"fork1(", b"7/1:\t", b"  ", b"    Received signal #"][random() % 7];
        let tail = (0..random() % 80).map(|_| alphabet[random() % alphabet.len()]);
        let line: Vec<u8> = start.iter().copied().chain(tail).collect();
        feed(&line, &layouts);
        lines.push(line);
    }
    Layout::detect(lines.iter().map(Vec::as_slice));
}
