//! Recognizes logs of other tools, which are refused because their lines may be mistaken for calls
//! of strace.
//!
//! Tools that print calls (ltrace, truss of FreeBSD, dtruss) are recognized if the first lines
//! contain more text that strace never prints than text that only strace prints: a program's own
//! output may contain lines of any tool. The other tools print no calls; their names are only
//! reported if nothing in a log was understood.

use std::collections::BTreeSet;

use memchr::{memchr, memmem, memrchr};
use sysdock_calls::syscalls::{self, UNLISTED};

use crate::{
    fields::{self, TextRanges},
    line::{self, Kind, Prefix},
    text,
};

/// The tool that wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ltrace,
    FreeBsdTruss,
    Dtruss,
    /// `qemu-ARCH -strace`
    Qemu,
    /// Calls of library functions.
    Library,
    Kdump,
    PerfTrace,
    /// `perf script`, ftrace, trace-cmd: a task, a CPU, a time, an event.
    KernelEvents,
    Gdb,
    Compiler,
    Syslog,
    /// `runsc --strace`
    Gvisor,
    /// `strace -c`
    StraceSummary,
}

/// The tool that a log was recognized as, and the first line that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The tool that prints such lines.
    pub tool: Tool,
    /// The first such line, counted from 1.
    pub line: u32,
}

/// Number of lines, among the first of a log, that are typical of each tool.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// For ltrace, FreeBSD's truss, dtruss and qemu: number of lines, and the first one.
    found: [(u32, u32); 4],
    /// Number of calls of common library functions that no kernel has (ltrace), and the first one.
    of_libc: (u32, u32),
    /// Number of lines that only strace prints.
    of_strace: u32,
    /// Number of calls of the kernel, by any tool.
    listed: u32,
    /// Number of other calls that have a result, and number of their names.
    others: (u32, u32),
    names: BTreeSet<Vec<u8>>,
    lines: u32,
}

const CALL_TOOLS: [Tool; 4] = [Tool::Ltrace, Tool::FreeBsdTruss, Tool::Dtruss, Tool::Qemu];

/// Number of unknown function names from which on a log is refused if they are most of it. A newer
/// kernel has fewer new calls.
const TOO_MANY_NAMES: usize = 8;

impl Evidence {
    /// Examine one more line.
    pub(crate) fn see(&mut self, line: &[u8]) {
        self.lines += 1;
        let mut prefix = Prefix::default();
        let event = line::split(line, &mut prefix);
        let number = self.lines;
        let count = |found: &mut (u32, u32)| *found = (found.0 + 1, if found.0 == 0 { number } else { found.1 });
        if let Some(tool) = printer(line, event) {
            let index = CALL_TOOLS.iter().position(|other| *other == tool).unwrap_or_default();
            return count(&mut self.found[index]);
        }
        if is_of_strace_only(event) {
            self.of_strace += 1;
        }
        if line::kind(event) != Kind::Call {
            return;
        }
        let name = fields::name(event);
        if syscalls::number(name) != UNLISTED {
            self.listed += 1;
        } else if is_among(LIBC, name) && has_result(event) {
            count(&mut self.of_libc);
        } else if !is_numbered(name) && !is_among(UNLISTED_CALLS, name) && has_result(event) {
            count(&mut self.others);
            if self.names.len() < TOO_MANY_NAMES {
                self.names.insert(name.to_vec());
            }
        }
    }

    /// The tool that wrote the log, if its lines may look like those of truss.
    pub(crate) fn before_truss(&self) -> Option<Sign> {
        self.most(&[1, 2, 3])
    }

    /// The tool that wrote the log, if it does not trace system calls.
    pub(crate) fn other_than_truss(&self) -> Option<Sign> {
        let (libc, first) = self.of_libc;
        if let Some(sign) = self.most(&[0]) {
            let line = if libc > 0 { sign.line.min(first) } else { sign.line };
            return Some(Sign { line, ..sign });
        }
        let enough = libc >= 3 || self.listed == 0 || self.found[0].0 > 0;
        if libc > 0 && enough && libc + self.found[0].0 > self.of_strace {
            return Some(Sign { tool: Tool::Ltrace, line: first });
        }
        let (others, first) = self.others;
        let many = self.names.len() >= TOO_MANY_NAMES && others > self.listed;
        many.then_some(Sign { tool: Tool::Library, line: first })
    }

    fn most(&self, tools: &[usize]) -> Option<Sign> {
        let index = tools.iter().copied().max_by_key(|index| self.found[*index].0)?;
        let (count, line) = self.found[index];
        (count > self.of_strace).then_some(Sign { tool: CALL_TOOLS[index], line })
    }
}

/// The tool that this line is typical of.
fn printer(line: &[u8], event: &[u8]) -> Option<Tool> {
    if is_of_freebsd(line, event) {
        Some(Tool::FreeBsdTruss)
    } else if is_of_qemu(event) {
        Some(Tool::Qemu)
    } else if is_of_dtruss(line) {
        Some(Tool::Dtruss)
    } else if is_of_ltrace(event) {
        Some(Tool::Ltrace)
    } else {
        None
    }
}

/// `= 3 (0x3)`, `ERR#2 'No such file or directory'`, `process exit, rval = 0`
/// (usr.bin/truss/syscalls.c and setup.c).
fn is_of_freebsd(line: &[u8], event: &[u8]) -> bool {
    if let Some(body) = line.strip_suffix(b")") {
        let Some(at) = memmem::rfind(body, b" (0x") else { return false };
        let Some(result) = memmem::rfind(&body[..at], b" = ") else { return false };
        let hexadecimal = text::number(&body[at + 2..]).filter(|(_, rest)| rest.is_empty());
        let decimal = text::number(&body[result + 3..at]).filter(|(_, rest)| rest.is_empty());
        return body[..result].trim_ascii_end().ends_with(b")") && decimal.is_some() && decimal == hexadecimal;
    }
    (line.ends_with(b"'") && memmem::find(line, b" ERR#").is_some())
        || memmem::find(event, b"process exit, rval = ").is_some_and(|at| at < 24)
}

/// ` = -1 errno=2 (No such file or directory)`, and arguments without blanks after the commas, as in
/// `openat(AT_FDCWD,"/etc/x",O_RDONLY) = 3` (linux-user/strace.c).
fn is_of_qemu(event: &[u8]) -> bool {
    if memmem::find(event, b") = -1 errno=").is_some() {
        return true;
    }
    let Some(arguments) = memchr(b'(', event).filter(|open| is_call(event) && *open > 0).map(|open| &event[open + 1..]) else {
        return false;
    };
    let first =
        memchr(b',', arguments).filter(|at| !arguments[..*at].iter().any(|byte| matches!(byte, b'"' | b'[' | b'{' | b'(')));
    first.is_some_and(|at| arguments.get(at + 1).is_some_and(|next| *next != b' ')) && memmem::find(event, b") = ").is_some()
}

/// `= 3 0`: result and error; `= -1 Err#2` (dtruss of macOS and the DTrace toolkit).
fn is_of_dtruss(line: &[u8]) -> bool {
    if line.ends_with(b"= return") && memmem::find(line, b"SYSCALL(args)").is_some() {
        return true;
    }
    let Some(close) = memrchr(b')', line) else { return false };
    let Some(result) = line[close + 1..].trim_ascii_start().strip_prefix(b"= ") else { return false };
    let Some((value, rest)) = text::number(result) else { return false };
    let error = rest.strip_prefix(b" ").unwrap_or_default();
    (value == -1 && error.starts_with(b"Err#")) || text::decimal(error).is_some()
}

/// Whether only ltrace prints this (ltrace 0.7, output.c and handle_event.c).
fn is_of_ltrace(event: &[u8]) -> bool {
    let goes_on =
        || [b" = ".as_slice(), b"<unfinished ...>", b"<no return ...>"].iter().any(|end| memmem::find(event, end).is_some());
    match event {
        [b'+', b'+', b'+', ..] => event.starts_with(b"+++ exited (status "),
        [b'S', b'Y', b'S', b'_', b'a'..=b'z' | b'_', ..] => is_call(event) && goes_on(),
        [b'_', b'_', b'l', ..] if event.starts_with(b"__libc_start_main(") => goes_on(),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
            let name = &event[..memchr(b'(', event).unwrap_or(0)];
            let symbol = |name: &[u8]| !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic());
            let library = memmem::find(name, b"->").is_some_and(|at| symbol(&name[..at]) && symbol(&name[at + 2..]));
            let system = name.ends_with(b"@SYS") || memmem::find(name, b"@lib").is_some();
            ((library || (system && symbol(name))) && goes_on())
                || (is_call(event) && (event.ends_with(b" <no return ...>") || event.ends_with(b"= <void>")))
        }
        _ => false,
    }
}

fn is_call(event: &[u8]) -> bool {
    let name = event.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    name > 0 && event.get(name) == Some(&b'(')
}

/// Whether only strace prints this: errors and constants by name, signals with their cause, exits,
/// calls that programs do not make by name.
fn is_of_strace_only(event: &[u8]) -> bool {
    const NAMES: &str = "execve brk openat newfstatat fstat fstat64 stat64 fcntl64 mmap2 exit_group arch_prctl set_tid_address set_robust_list \
        futex clone clone3 wait4 getdents64";
    match event {
        [b'-' | b'+' | b'<', ..] => {
            event.starts_with(b"+++ exited with ")
                || memmem::find(event, b"{si_signo=").is_some()
                || event.starts_with(b"<... rt_")
        }
        [b'a'..=b'z' | b'_', ..] => {
            let name = fields::name(event);
            name.len() < event.len()
                && (name.starts_with(b"rt_") || is_among(NAMES, name) || memmem::find(event, b" = -1 E").is_some())
        }
        _ => false,
    }
}

/// Whether the arguments end and a number follows.
fn has_result(event: &[u8]) -> bool {
    let mut places = TextRanges::default();
    places.start(fields::name(event));
    fields::rest(event, &mut places).is_ok()
}

fn is_among(names: &str, name: &[u8]) -> bool {
    names.split_ascii_whitespace().any(|other| other.as_bytes() == name)
}

/// `syscall_0x1c5`, `SYS_290`
fn is_numbered(name: &[u8]) -> bool {
    let number = name.strip_prefix(b"syscall_").or_else(|| name.strip_prefix(b"SYS_"));
    number.is_some_and(|number| text::number(number).is_some_and(|(_, rest)| rest.is_empty()))
}

/// The tool without calls that the first lines of a log look like.
pub(crate) fn likeness(log: &[u8]) -> Option<Tool> {
    const LINES: usize = 200;
    /// Lines of these tools are shorter.
    const LONGEST: usize = 4096;
    let mut counts: Vec<(Tool, usize)> = Vec::new();
    let mut lines = 0;
    for line in log.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES) {
        lines += 1;
        let Some(tool) = Some(line).filter(|line| line.len() < LONGEST).and_then(talker) else { continue };
        match counts.iter_mut().find(|(other, _)| *other == tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((tool, 1)),
        }
    }
    // Compilers and debuggers print other lines in between.
    let (tool, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 16 >= lines).then_some(tool)
}

fn talker(line: &[u8]) -> Option<Tool> {
    let starts = |words: &[&[u8]]| words.iter().any(|word| line.starts_with(word));
    let holds = |words: &[&[u8]]| words.iter().any(|word| memmem::find(line, word).is_some());
    if is_of_summary(line) {
        Some(Tool::StraceSummary)
    } else if holds(&[b" strace.go:"]) {
        Some(Tool::Gvisor)
    } else if is_kdump(line) {
        Some(Tool::Kdump)
    } else if holds(&[b" ms): "]) {
        Some(Tool::PerfTrace)
    } else if is_kernel_event(line) {
        Some(Tool::KernelEvents)
    } else if starts(&[
        b"(gdb)",
        b"Breakpoint ",
        b"Reading symbols from ",
        b"Starting program: ",
        b"[Thread debugging",
        b"[Inferior ",
    ]) || (starts(&[b"#"]) && holds(&[b" in ", b" at "]))
    {
        Some(Tool::Gdb)
    } else if holds(&[b": error: ", b": warning: ", b": note: ", b": undefined reference to "]) {
        Some(Tool::Compiler)
    } else {
        is_syslog(line).then_some(Tool::Syslog)
    }
}

/// `% time     seconds  usecs/call     calls    errors syscall`, ` 98.71   37.123456        1481 ...`
fn is_of_summary(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let mut has_decimals = |number: usize| {
        let word = words.next().unwrap_or_default();
        word.len() > number + 1 && word[word.len() - number - 1] == b'.' && text::seconds(word).is_some()
    };
    line.starts_with(b"% time     seconds  usecs/call") || (has_decimals(2) && has_decimals(6))
}

/// `  1234 ls       CALL  open(0x7fff, 0)`
fn is_kdump(line: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [b"CALL", b"RET", b"NAMI", b"GIO", b"PSIG", b"CSW", b"STRU", b"ARGS", b"USER"];
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let number = words.next().and_then(text::decimal);
    number.is_some() && words.next().is_some() && words.take(2).any(|word| WORDS.contains(&word))
}

/// `bash-1234 [000] d..2. 123.456789: sched_switch: ...`; `bash  1234 [000] 123.456789: sched:sched_switch: ...`
fn is_kernel_event(line: &[u8]) -> bool {
    let Some(open) = memchr(b'[', line) else { return false };
    let digits = line[open + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits < 3 || line.get(open + 1 + digits) != Some(&b']') {
        return false;
    }
    let words = line[open + digits + 2..].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_time =
        |word: &[u8]| word.strip_suffix(b":").is_some_and(|time| memchr(b'.', time).is_some() && text::seconds(time).is_some());
    words.take(2).any(is_time)
}

/// `Nov 25 01:09:22 host program[12]: ...`
fn is_syslog(line: &[u8]) -> bool {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    line.len() > 16
        && MONTHS.chunks_exact(3).any(|month| line.starts_with(month))
        && line[3] == b' '
        && [9, 12].iter().all(|at| line[*at] == b':')
        && line[15] == b' '
}

/// Functions of the C library that programs call most, and that no kernel has.
const LIBC: &str = "\
    __ctype_b_loc __ctype_get_mb_cur_max __ctype_tolower_loc __ctype_toupper_loc __cxa_atexit __cxa_finalize \
    __errno_location __fprintf_chk __fxstat __libc_start_main __lxstat __memcpy_chk __overflow __printf_chk __snprintf_chk \
    __sprintf_chk __stack_chk_fail __strdup __uflow __vfprintf_chk __xstat abort atexit atoi atol bindtextdomain bsearch \
    calloc clearerr closedir dcgettext dlclose dlopen dlsym error fclose fdopen feof ferror fflush fflush_unlocked fgetc \
    fgets fgets_unlocked fileno fopen fopen64 fprintf fputc fputs fputs_unlocked fread fread_unlocked free freeaddrinfo \
    fscanf fseek fseeko ftell ftello fwrite fwrite_unlocked getaddrinfo getc getchar getenv gethostbyname getline getopt \
    getopt_long getpagesize getpwnam getpwuid gettext getwd gmtime isatty localtime localtime_r longjmp malloc mbrtowc \
    mbstowcs memchr memcmp memcpy memmove mempcpy memset mktime nl_langinfo opendir pclose perror popen printf \
    pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock putc putchar putenv puts qsort raise rand random \
    realloc reallocarray realpath rewind scanf setenv setjmp setlocale setvbuf sleep snprintf sprintf srand sscanf stpcpy \
    strcasecmp strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror strftime strlen strncasecmp strncat \
    strncmp strncpy strndup strnlen strpbrk strrchr strspn strstr strtod strtok strtol strtoul strtoull sysconf system \
    textdomain tolower toupper ungetc usleep vfprintf vprintf vsnprintf wcslen wctomb";

/// Calls of Linux that the list of `sysdock_calls` lacks because they have the class `other` and
/// their arguments are not used.
const UNLISTED_CALLS: &str = "\
    _sysctl add_key afs_syscall atomic_barrier atomic_cmpxchg_32 bdflush breakpoint cachectl cacheflush cachestat \
    create_module delete_module epoll_ctl_old epoll_wait_old finit_module fsconfig fsmount fsopen fspick futimesat \
    get_kernel_syms get_tls getpagesize getxattrat idle init_module ioperm iopl ipc kexec_file_load kexec_load keyctl \
    listmount lookup_dcookie lsm_get_self_attr lsm_list_modules lsm_set_self_attr map_shadow_stack modify_ldt mount_setattr \
    move_mount mq_getsetattr mseal nfsservctl olduname open_tree open_tree_attr pciconfig_iobase pciconfig_read \
    pciconfig_write perfctr printargs query_module quotactl quotactl_fd reboot request_key riscv_flush_icache riscv_hwprobe \
    rtas s390_guarded_storage s390_pci_mmio_read s390_runtime_instr set_mempolicy_home_node set_tls sgetmask socketcall \
    spu_create spu_run ssetmask statmount subpage_prot swapcontext switch_endian sync_file_range2 sysfs syslog sysmips \
    timerfd tuxcall uretprobe uselib usr26 usr32 ustat utrap_install vhangup vm86 vm86old vserver";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    fn tool(log: &str) -> Option<Tool> {
        match Format::detect(log.as_bytes()).0 {
            Format::Foreign(sign) => Some(sign.tool),
            _ => None,
        }
    }

    #[test]
    fn functions_of_the_library_are_no_calls() {
        assert!(LIBC.split_ascii_whitespace().all(|name| syscalls::number(name.as_bytes()) == UNLISTED));
    }

    #[test]
    fn other_tools_that_print_calls_are_recognized_by_their_lines() {
        for (log, expected) in [
            ("malloc(32) = 0x5581\n", Tool::Ltrace),
            (
                "malloc(32, 0x7f, 0x7f, 0x40) = 0xc9942a0\nputs(\"hi\"hi\n)  = 3\nread(3, 0x7f, 10, 0x7f) = 10\n+++ exited (status 0) +++\n",
                Tool::Ltrace,
            ),
            ("__libc_start_main(0x401146, 1, 0x7ffe, 0x4011c0 <unfinished ...>\nread(3, \"\", 10) = 0\n", Tool::Ltrace),
            ("[pid 8834] 01:33:00.249908 SYS_brk(0, 0x7ff, 0, 895) = 0x2fbdf000\n", Tool::Ltrace),
            ("8834 libfoo.so->strlen(\"abc\") = 3\n", Tool::Ltrace),
            ("brk@SYS(nil)  = 0x1000\nfree(0x10) = <void>\n", Tool::Ltrace),
            (
                "open(\"/etc/passwd\",O_RDONLY,0666)\t\t\t = 3 (0x3)\nopen(\"/x\",O_RDONLY,00)\t ERR#2 'No such file or directory'\n",
                Tool::FreeBsdTruss,
            ),
            ("  1234: read(3,\"...\",1024) = 12 (0xc)\n  1234: process exit, rval = 0\n", Tool::FreeBsdTruss),
            (
                "0.000123456 0.000012345 mmap(0x0,4096,PROT_READ,MAP_ANON,-1,0x0) = 34366459904 (0x800669000)\n",
                Tool::FreeBsdTruss,
            ),
            ("openat(AT_FDCWD,\"/etc/x\",O_RDONLY,00)\t ERR#2 'No such file or directory'\n", Tool::FreeBsdTruss),
            (
                "4120 openat(AT_FDCWD,\"/etc/x\",O_RDONLY) = -1 errno=2 (No such file or directory)\n4120 close(3) = 0\n",
                Tool::Qemu,
            ),
            ("4120 read(3,0x822c40,832) = 832\n4120 openat(AT_FDCWD,\"/a\",O_RDONLY|O_CLOEXEC) = 3\n", Tool::Qemu),
            ("SYSCALL(args) \t\t = return\nopen(\"/dev/dtracehelper\\0\", 0x2, 0x1)\t\t = 3 0\n", Tool::Dtruss),
            ("1234/0x5678:  stat64(\"/x\\0\", 0x7FFF, 0x0)\t\t = -1 Err#2\n", Tool::Dtruss),
        ] {
            assert_eq!(tool(log), Some(expected), "{log}");
        }
        let library: String = (0..9).map(|number| format!("_ZN3Foo{number}barEv(0x10, 0x20) = 0x5581\n")).collect();
        assert_eq!(tool(&library), Some(Tool::Library));
    }

    #[test]
    fn logs_of_strace_are_not_refused() {
        for log in [
            "",
            "malloc(32);\nputs(\"hello\");\n",
            "close(3) = 0\n",
            "brand_new_call(3) = 0\n",
            "brand_new_call(3) = 0x7f00\nsyscall_0x1c5(1) = 5\nSYS_290(1) = 0\n",
            "execve(\"./a\", [\"./a\"], 0x7f /* 3 vars */) = 0\nmalloc(32) = 0x5581\nexit_group(0) = ?\n+++ exited with 0 +++\n",
            "write(1, \"malloc(32) = 0x5581\\n\", 20malloc(32) = 0x5581\n) = 20\n",
            "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)\nopen(\"/x\", O_RDONLY) = -1 ENOENT (No such file or directory)\n",
            "read(3, \") = 3 (0x3)\", 11) = 11\n",
        ] {
            assert_eq!(tool(log), None, "{log}");
        }
        let mut calls: String = ["keyctl", "add_key", "reboot", "ioperm", "iopl", "vhangup", "ustat", "fsopen", "fsmount"]
            .map(|name| format!("{name}(1) = 0\n"))
            .concat();
        assert_eq!(tool(&calls), None);
        calls += &"new_one(1) = 0\n".repeat(100);
        assert_eq!(tool(&calls), None);
    }

    #[test]
    fn what_a_log_without_calls_looks_like_is_said() {
        for (log, expected) in [
            ("            bash-1234    [000] d..2.   123.456789: sched_switch: prev_comm=bash\n", Some(Tool::KernelEvents)),
            (
                "bash  1234 [000]   123.456789:          1 cycles:  ffffffff [unknown] ([kernel.kallsyms])\n",
                Some(Tool::KernelEvents),
            ),
            ("     0.050 ( 0.013 ms): ls/8847 brk() = 0x55747baea000\n", Some(Tool::PerfTrace)),
            ("  1234 ls       CALL  open(0x7fff,0)\n  1234 ls       NAMI  \"/etc/x\"\n", Some(Tool::Kdump)),
            ("Reading symbols from ./p...\n(gdb) bt\n#0  main () at p.c:6\n", Some(Tool::Gdb)),
            ("p.c: In function 'main':\np.c:3:5: error: expected ';'\n", Some(Tool::Compiler)),
            ("Nov 25 01:09:22 host kernel: [0.0] text\n", Some(Tool::Syslog)),
            (
                "% time     seconds  usecs/call     calls    errors syscall\n98.71   37.123456 1481 25012 310 futex\n",
                Some(Tool::StraceSummary),
            ),
            ("I0101 10:00:00.1 1 strace.go:567] [   1] sh E read(0x3 /etc/x, 0x7f, 0x340)\n", Some(Tool::Gvisor)),
            ("Dear reader,\nthis is no log.\n", None),
            ("1234 [00007f1234567890] close(3) = 0\n", None),
        ] {
            assert_eq!(likeness(log.as_bytes()), expected, "{log}");
        }
    }
}
