//! Profiles of callgrind, and of other programs that write its format:
//! https://valgrind.org/docs/manual/cl-format.html.
//!
//! A profile contains sums: for each function its own instructions, and for each pair of functions
//! the calls, with the instructions of those calls. It has no order, no addresses of memory and no
//! single calls, so tables of those are not written.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read},
};

use rustc_hash::{FxHashMap, FxHashSet};
use sysdock_table::{Recording, TableError, codes, rows};

/// Longest line [B]: names of functions in C++ may have many thousand characters.
const LONGEST_LINE: u64 = 1 << 20;
/// Names in the line `events` of a count of instructions.
const STEPS: [&str; 2] = ["Ir", "Instructions"];
const UNKNOWN: &str = "???";
/// Longest name of a task [B].
const COMM: usize = 15;

/// Why a profile cannot be read.
#[derive(Debug)]
pub enum ProfileError {
    /// The file cannot be read.
    Io(io::Error),
    /// The line of this number is invalid.
    Line(u64, WrongLine),
    /// It ends before its first costs.
    Empty,
}

/// What is wrong with a line.
#[derive(Debug)]
pub enum WrongLine {
    /// It is longer than 1 MiB.
    TooLong,
    NotUnderstood,
    /// A version of the format that is not known.
    Version(String),
    /// The number of a thread is expected.
    NoThread,
    /// Names of positions, which are not one to three.
    PositionNames,
    /// The profile counts these events, and no instructions.
    Events(String),
    /// The numbers of a total are expected.
    NoTotal,
    /// The costs of the calls before are expected.
    NoCallCosts,
    /// The number of calls is expected.
    NoCallCount,
    /// Calls of no function.
    NoCallee,
    /// This number has no name before the line.
    NoName(u64),
    /// Costs before the line of the events.
    NoEvents,
    NoPosition,
    /// A position is not understood.
    Position,
    /// A number is expected.
    NoNumber,
    /// More numbers than there are events.
    TooManyNumbers,
    /// Costs before the first function.
    NoFunction,
    /// A sum has no room.
    TooLarge,
}

codes!(ProfileError { Io: "io", Line: "line", Empty: "empty" });

impl From<io::Error> for ProfileError {
    fn from(error: io::Error) -> ProfileError {
        ProfileError::Io(error)
    }
}

/// Whether a file with this beginning is a profile: `# callgrind format`, or the lines of a header
/// up to `events:`.
#[must_use]
pub fn is_profile(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    if text.trim_start().starts_with("# callgrind format") {
        return true;
    }
    let is_header =
        |line: &str| line.trim().is_empty() || line.starts_with('#') || key_of(line).is_some_and(|(_, mark, _)| mark == ':');
    text.lines().take_while(|line| is_header(line)).any(|line| line.starts_with("events:"))
}

/// Parse `key=value` or `key: value`.
fn key_of(line: &str) -> Option<(&str, char, &str)> {
    let end = line.find(|each: char| !each.is_ascii_lowercase())?;
    let mark = line[end..].chars().next().filter(|mark| end > 0 && matches!(mark, '=' | ':'))?;
    Some((&line[..end], mark, &line[end + 1..]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Function {
    object: u32,
    file: u32,
    name: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    steps: u64,
    loads: u64,
    stores: u64,
}

/// Calls of one function by another, and the instructions of those calls.
#[derive(Clone, Copy, Debug, Default)]
struct Arc {
    times: u64,
    steps: u64,
}

/// Positions of the relevant numbers in a line of costs.
#[derive(Clone, Debug)]
struct Columns {
    positions: usize,
    events: usize,
    steps: usize,
    loads: Option<usize>,
    stores: Option<usize>,
}

/// The sums of all files.
#[derive(Debug, Default)]
pub struct Profile {
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    functions: Vec<Function>,
    known: FxHashMap<Function, u32>,
    /// Process and thread, as the profile numbers them.
    tasks: Vec<(Option<i32>, u32)>,
    task_numbers: FxHashMap<(Option<i32>, u32), u32>,
    own: BTreeMap<(u32, u32), Sums>,
    arcs: BTreeMap<(u32, u32, u32), Arc>,
    /// The command of the first file.
    pub command: Option<String>,
    /// Number of instructions, as added up here.
    pub steps: u64,
    /// Number of instructions, as the files themselves state it.
    pub stated: u64,
    counts_accesses: bool,
    /// Number of lines.
    pub lines: u64,
}

/// State of reading a file.
struct File<'p> {
    profile: &'p mut Profile,
    /// Numbers in use, by kind (objects, files, functions) and number in the file.
    short: FxHashMap<(char, u64), u32>,
    pid: Option<i32>,
    thread: u32,
    columns: Option<Columns>,
    positions: usize,
    object: Option<u32>,
    file: Option<u32>,
    function: Option<u32>,
    called: [Option<u32>; 3],
    /// The called function and the number of calls, if the next line contains the costs of calls.
    call: Option<(u32, u64)>,
    /// The sum that the current part states.
    summary: Option<u64>,
    has_totals: bool,
}

impl Profile {
    /// Add the content of a file.
    ///
    /// # Errors
    /// [`ProfileError`]; what was added before stays.
    pub fn read(&mut self, mut text: impl BufRead) -> Result<(), ProfileError> {
        let mut file = File {
            profile: self,
            short: FxHashMap::default(),
            pid: None,
            thread: 1,
            columns: None,
            positions: 1,
            object: None,
            file: None,
            function: None,
            called: [None; 3],
            call: None,
            summary: None,
            has_totals: false,
        };
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            if (&mut text).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            number += 1;
            if line.len() as u64 == LONGEST_LINE {
                return Err(ProfileError::Line(number, WrongLine::TooLong));
            }
            let shown = String::from_utf8_lossy(&line);
            file.line(shown.trim_end()).map_err(|wrong| ProfileError::Line(number, wrong))?;
        }
        file.end_part();
        let has_costs = file.columns.is_some();
        self.lines += number;
        if has_costs { Ok(()) } else { Err(ProfileError::Empty) }
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn function(&mut self, function: Function) -> u32 {
        *self.known.entry(function).or_insert_with(|| {
            self.functions.push(function);
            self.functions.len() as u32 - 1
        })
    }

    fn task(&mut self, task: (Option<i32>, u32)) -> u32 {
        *self.task_numbers.entry(task).or_insert_with(|| {
            self.tasks.push(task);
            self.tasks.len() as u32 - 1
        })
    }
}

impl File<'_> {
    fn line(&mut self, line: &str) -> Result<(), WrongLine> {
        match line.bytes().next() {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.costs(line),
            Some(_) => match key_of(line) {
                Some((key, ':', value)) => self.header(key, value.trim()),
                Some((key, _, value)) => self.place(key, value.trim()),
                None => Err(WrongLine::NotUnderstood),
            },
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), WrongLine> {
        match key {
            "version" if value != "1" => return Err(WrongLine::Version(value.into())),
            "part" => {
                self.end_part();
                self.thread = 1;
            }
            "pid" => self.pid = value.parse().ok(),
            "thread" => self.thread = value.parse().map_err(|_| WrongLine::NoThread)?,
            "cmd" if self.profile.command.is_none() => self.profile.command = Some(value.to_owned()),
            "positions" => {
                self.positions = value.split_whitespace().count();
                if !(1..=3).contains(&self.positions) {
                    return Err(WrongLine::PositionNames);
                }
            }
            "events" => self.columns = Some(self.columns_of(value)?),
            // The total at the end is more exact than the summary, which was written in advance.
            "totals" => self.state(value, true)?,
            "summary" if !self.has_totals => self.state(value, false)?,
            _ => {}
        }
        Ok(())
    }

    fn columns_of(&mut self, events: &str) -> Result<Columns, WrongLine> {
        let names: Vec<&str> = events.split_whitespace().collect();
        let at = |name: &str| names.iter().position(|each| *each == name);
        let Some(steps) = STEPS.iter().find_map(|name| at(name)) else { return Err(WrongLine::Events(events.into())) };
        let columns = Columns { positions: self.positions, events: names.len(), steps, loads: at("Dr"), stores: at("Dw") };
        self.profile.counts_accesses |= columns.loads.is_some();
        Ok(columns)
    }

    fn state(&mut self, value: &str, is_total: bool) -> Result<(), WrongLine> {
        let Some(columns) = &self.columns else { return Ok(()) };
        let stated = value.split_whitespace().nth(columns.steps).map_or(Ok(0), str::parse);
        self.summary = Some(stated.map_err(|_| WrongLine::NoTotal)?);
        self.has_totals = is_total;
        Ok(())
    }

    fn end_part(&mut self) {
        self.profile.stated = self.profile.stated.saturating_add(self.summary.take().unwrap_or(0));
        (self.has_totals, self.function, self.object, self.file, self.call) = (false, None, None, None, None);
        self.called = [None; 3];
    }

    /// Process a line such as `fn=(12) main`.
    fn place(&mut self, key: &str, value: &str) -> Result<(), WrongLine> {
        if self.call.is_some() {
            return Err(WrongLine::NoCallCosts);
        }
        match key {
            "ob" => self.object = Some(self.name('o', value)?),
            "fl" | "fi" | "fe" => self.file = Some(self.name('f', value)?),
            "fn" => {
                let name = self.name('n', value)?;
                self.function = Some(self.function_at(self.object, self.file, name));
            }
            "cob" => self.called[0] = Some(self.name('o', value)?),
            "cfl" | "cfi" => self.called[1] = Some(self.name('f', value)?),
            "cfn" => self.called[2] = Some(self.name('n', value)?),
            "calls" => self.calls(value)?,
            // Jumps have no costs, but may define numbers of names.
            "jfi" => drop(self.name('f', value)?),
            "jfn" => drop(self.name('n', value)?),
            "jump" | "jcnd" => {}
            _ => return Err(WrongLine::NotUnderstood),
        }
        Ok(())
    }

    fn function_at(&mut self, object: Option<u32>, file: Option<u32>, name: u32) -> u32 {
        let unknown = self.profile.intern(UNKNOWN);
        let function = Function { object: object.unwrap_or(unknown), file: file.unwrap_or(unknown), name };
        self.profile.function(function)
    }

    fn calls(&mut self, value: &str) -> Result<(), WrongLine> {
        let times = value.split_whitespace().next().and_then(number).ok_or(WrongLine::NoCallCount)?;
        let [object, file, name] = std::mem::take(&mut self.called);
        let name = name.ok_or(WrongLine::NoCallee)?;
        let callee = self.function_at(object.or(self.object), file.or(self.file), name);
        self.call = Some((callee, times));
        Ok(())
    }

    /// The name in a line, which may define a number, or be one.
    fn name(&mut self, space: char, value: &str) -> Result<u32, WrongLine> {
        let short = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let Some((number, rest)) = short.and_then(|(digits, rest)| Some((digits.parse::<u64>().ok()?, rest.trim_start()))) else {
            return Ok(self.profile.intern(value));
        };
        if rest.is_empty() {
            let known = self.short.get(&(space, number)).copied();
            return known.ok_or(WrongLine::NoName(number));
        }
        let name = self.profile.intern(rest);
        self.short.insert((space, number), name);
        Ok(name)
    }

    fn costs(&mut self, line: &str) -> Result<(), WrongLine> {
        let columns = self.columns.clone().ok_or(WrongLine::NoEvents)?;
        let mut words = line.split_whitespace();
        for _ in 0..columns.positions {
            let position = words.next().ok_or(WrongLine::NoPosition)?;
            let digits = position.strip_prefix(['+', '-']).unwrap_or(position);
            if position != "*" && number(digits).is_none() {
                return Err(WrongLine::Position);
            }
        }
        let costs = words.map(|word| number(word).ok_or(WrongLine::NoNumber)).collect::<Result<Vec<u64>, _>>()?;
        if costs.len() > columns.events {
            return Err(WrongLine::TooManyNumbers);
        }
        let cost = |column: Option<usize>| column.and_then(|at| costs.get(at)).copied().unwrap_or(0);
        let steps = cost(Some(columns.steps));
        let function = self.function.ok_or(WrongLine::NoFunction)?;
        let task = self.profile.task((self.pid, self.thread));
        if let Some((callee, times)) = self.call.take() {
            let arc = self.profile.arcs.entry((task, function, callee)).or_default();
            arc.times = added(arc.times, times)?;
            arc.steps = added(arc.steps, steps)?;
            return Ok(());
        }
        let sums = self.profile.own.entry((task, function)).or_default();
        sums.steps = added(sums.steps, steps)?;
        sums.loads = added(sums.loads, cost(columns.loads))?;
        sums.stores = added(sums.stores, cost(columns.stores))?;
        self.profile.steps = added(self.profile.steps, steps)?;
        Ok(())
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The sum of two numbers. Columns of tables have 63 bits.
fn added(sum: u64, more: u64) -> Result<u64, WrongLine> {
    sum.checked_add(more).filter(|sum| i64::try_from(*sum).is_ok()).ok_or(WrongLine::TooLarge)
}

impl Profile {
    /// Write the tables.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn write(&self, recording: &mut Recording) -> Result<(), TableError> {
        let (objects, numbers) = self.objects();
        recording.write_rows(objects.iter().enumerate().map(|(number, object)| {
            let path = self.names[*object as usize].as_str();
            rows::Images {
                image_id: number as i32,
                path: if path == UNKNOWN { "[unknown]" } else { path }.into(),
                mode: if base_name(path).contains(".so") { "library" } else { "user" }.into(),
                build: None,
                symbols: "profile".into(),
            }
        }))?;
        recording.write_rows(self.functions.iter().enumerate().map(|(number, function)| rows::TracedFunctions {
            function_id: number as i32,
            image_id: numbers[&function.object],
            name: self.names[function.name as usize].as_str().into(),
            start: None,
        }))?;
        self.write_tasks(recording)?;
        let steps = self.steps as i64;
        let request =
            rows::TracedRequests { request_id: 1, name: "whole profile".into(), first_step: 0, steps, steps_collapsed: None };
        recording.write_rows([request])?;
        self.write_totals(recording)
    }

    /// Files with code, in the order of their functions, and their numbers.
    fn objects(&self) -> (Vec<u32>, FxHashMap<u32, i32>) {
        let mut objects = Vec::new();
        let mut numbers = FxHashMap::default();
        for function in &self.functions {
            numbers.entry(function.object).or_insert_with(|| {
                objects.push(function.object);
                objects.len() as i32 - 1
            });
        }
        (objects, numbers)
    }

    fn write_tasks(&self, recording: &mut Recording) -> Result<(), TableError> {
        let program = self.command.as_deref().and_then(|command| command.split_whitespace().next()).map(base_name);
        let comm = program.map(|name| name.chars().take(COMM).collect::<String>());
        recording.write_rows(self.tasks.iter().enumerate().map(|(number, (pid, thread))| {
            let steps: u64 = self.own.range((number as u32, 0)..=(number as u32, u32::MAX)).map(|(_, sums)| sums.steps).sum();
            rows::TracedTasks {
                task_id: number as i32,
                // Numbers of other threads are not those of the system.
                pid: pid.filter(|_| *thread == 1),
                tgid: *pid,
                comm: comm.as_deref().map(Into::into),
                steps: steps as i64,
            }
        }))
    }

    fn write_totals(&self, recording: &mut Recording) -> Result<(), TableError> {
        let mut called: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut inclusive: BTreeMap<(u32, u32), u64> = self.own.iter().map(|(place, sums)| (*place, sums.steps)).collect();
        for (&(task, caller, callee), arc) in &self.arcs {
            let times = called.entry((task, callee)).or_default();
            *times = times.saturating_add(arc.times);
            inclusive.entry((task, callee)).or_default();
            let steps = inclusive.entry((task, caller)).or_default();
            // Work of a recursive call is part of the function's own steps and of its other calls.
            *steps = steps.saturating_add(if caller == callee { 0 } else { arc.steps });
        }
        let mut circles = (u32::MAX, FxHashSet::default());
        recording.write_rows(inclusive.iter().map(|(&(task, function), &inclusive)| {
            let own = self.own.get(&(task, function)).copied().unwrap_or_default();
            let accesses = |count: u64| self.counts_accesses.then_some(count as i64);
            if circles.0 != task {
                circles = (task, self.in_circles(task));
            }
            let is_known = !circles.1.contains(&function);
            rows::FunctionTotals {
                request_id: 1,
                task_id: task as i32,
                function_id: function as i32,
                times: called.get(&(task, function)).map(|&times| i64::try_from(times).unwrap_or(i64::MAX)),
                steps: own.steps as i64,
                steps_inclusive: i64::try_from(inclusive).ok().filter(|_| is_known),
                loads: accesses(own.loads),
                stores: accesses(own.stores),
            }
        }))
    }

    /// Functions of a task that are part of a cycle of several (Tarjan, 1972, without recursion).
    fn in_circles(&self, task: u32) -> FxHashSet<u32> {
        // Only the functions of this task: a file can name many tasks, and many functions.
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut functions = Vec::new();
        let mut calls: Vec<Vec<usize>> = Vec::new();
        let mut place = |function: u32, calls: &mut Vec<Vec<usize>>| {
            *places.entry(function).or_insert_with(|| {
                functions.push(function);
                calls.push(Vec::new());
                calls.len() - 1
            })
        };
        for (&(_, caller, callee), _) in self.arcs.range((task, 0, 0)..=(task, u32::MAX, u32::MAX)) {
            let (caller, callee) = (place(caller, &mut calls), place(callee, &mut calls));
            calls[caller].push(callee);
        }
        let count = calls.len();
        let mut circles = Circles {
            order: vec![0; count],
            lowest: vec![0; count],
            is_open: vec![false; count],
            found: vec![false; count],
            open: Vec::new(),
            next: 0,
        };
        for start in 0..count {
            if circles.order[start] == 0 {
                circles.search(start, &calls);
            }
        }
        functions.into_iter().zip(circles.found).filter_map(|(function, found)| found.then_some(function)).collect()
    }
}

struct Circles {
    /// Order in which each function was found, from 1; 0: not yet.
    order: Vec<u32>,
    /// The first function that is reachable from it, among the open ones.
    lowest: Vec<u32>,
    is_open: Vec<bool>,
    found: Vec<bool>,
    open: Vec<usize>,
    next: u32,
}

impl Circles {
    fn search(&mut self, start: usize, calls: &[Vec<usize>]) {
        let mut path = vec![(start, 0)];
        self.enter(start);
        while let Some((function, position)) = path.last_mut() {
            let function = *function;
            if let Some(&callee) = calls[function].get(*position) {
                *position += 1;
                if self.order[callee] == 0 {
                    self.enter(callee);
                    path.push((callee, 0));
                } else if self.is_open[callee] {
                    self.lowest[function] = self.lowest[function].min(self.order[callee]);
                }
                continue;
            }
            path.pop();
            if let Some((caller, _)) = path.last() {
                self.lowest[*caller] = self.lowest[*caller].min(self.lowest[function]);
            }
            if self.lowest[function] == self.order[function] {
                self.close(function);
            }
        }
    }

    fn enter(&mut self, function: usize) {
        self.next += 1;
        (self.order[function], self.lowest[function], self.is_open[function]) = (self.next, self.next, true);
        self.open.push(function);
    }

    /// The functions that are open from this one on form a cycle.
    fn close(&mut self, function: usize) {
        let from = self.open.iter().rposition(|each| *each == function).unwrap_or(0);
        let members = self.open.split_off(from);
        for &member in &members {
            self.is_open[member] = false;
            self.found[member] = members.len() > 1;
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Profile, ProfileError> {
        let mut profile = Profile::default();
        profile.read(text.as_bytes()).map(|()| profile)
    }

    fn wrong(text: &str) -> String {
        match read(text) {
            Err(ProfileError::Line(line, what)) => format!("{line}: {what:?}"),
            other => format!("{other:?}"),
        }
    }

    /// Name, own steps and inclusive steps, as far as known.
    fn sums(profile: &Profile) -> Vec<(String, u64, Option<u64>)> {
        let circles = profile.in_circles(0);
        let each = (0..profile.functions.len() as u32).map(|function| {
            let own = profile.own.get(&(0, function)).map_or(0, |sums| sums.steps);
            let called = profile.arcs.iter().filter(|((_, caller, callee), _)| *caller == function && callee != caller);
            let inclusive = own + called.map(|(_, arc)| arc.steps).sum::<u64>();
            let name = profile.names[profile.functions[function as usize].name as usize].clone();
            (name, own, (!circles.contains(&function)).then_some(inclusive))
        });
        each.collect()
    }

    const MANUAL: &str = "events: Cycles Ir Flops\nfl=(1) file1.c\nfn=(1) main\n16 20 400\ncfn=(2) func1\ncalls=1 50\n16 9 400\n\
        cfi=(2) file2.c\ncfn=(3) func2\ncalls=3 20\n16 9 600\nfn=(2)\n51 9 100\ncfi=(2)\ncfn=(3)\ncalls=2 20\n51 9 300\n\
        fl=(2)\nfn=(3)\n20 9 700\n";

    #[test]
    fn the_example_of_the_manual() {
        let profile = read(MANUAL).unwrap();
        let expected = [("main", 400, 1400), ("func1", 100, 400), ("func2", 700, 700)];
        assert_eq!(sums(&profile), expected.map(|(name, own, all)| (name.to_owned(), own, Some(all))));
        assert_eq!(profile.steps, 1200);
        assert_eq!(profile.arcs[&(0, 0, 2)].times, 3);
    }

    #[test]
    fn positions_of_all_kinds_are_read() {
        let text =
            "positions: instr line\nevents: Ir Dr Dw\nfn=f\n0x10 5 7 2 1\n+3 * 1\n* -2 1 1\njcnd=1/2 +9 *\n* *\ntotals: 9 3 1\n";
        let profile = read(text).unwrap();
        let sums = profile.own[&(0, 0)];
        assert_eq!((sums.steps, sums.loads, sums.stores), (9, 3, 1));
        assert_eq!(profile.stated, 9);
        assert!(profile.counts_accesses);
    }

    #[test]
    fn parts_and_threads_are_added_up() {
        let part = |number: u32, thread: u32| {
            format!("pid: 7\npart: {number}\nthread: {thread}\nevents: Ir\nfn=(1) f\n1 5\ntotals: 5\n")
        };
        let profile = read(&format!("version: 1\n{}{}{}", part(1, 1), part(2, 1), part(3, 2))).unwrap();
        assert_eq!(profile.tasks, [(Some(7), 1), (Some(7), 2)]);
        assert_eq!((profile.own[&(0, 0)].steps, profile.own[&(1, 0)].steps), (10, 5));
        assert_eq!((profile.steps, profile.stated), (15, 15));
    }

    #[test]
    fn functions_of_one_name_in_two_files_are_two() {
        let profile = read("events: Ir\nob=a\nfl=x.c\nfn=f\n1 1\nfl=y.c\nfn=f\n1 2\nob=b\nfn=f\n1 4\n").unwrap();
        assert_eq!(profile.functions.len(), 3);
        assert_eq!(profile.objects().0.len(), 2);
    }

    #[test]
    fn circles_have_no_inclusive_steps_and_direct_recursion_counts_once() {
        let call = |callee: &str, steps: u32| format!("cfn={callee}\ncalls=1 0\n0 {steps}\n");
        let text = format!(
            "events: Ir\nfn=main\n0 1\n{}fn=a\n0 2\n{}{}fn=b\n0 3\n{}fn=leaf\n0 4\n",
            call("a", 99),
            call("a", 50),
            call("b", 20),
            call("leaf", 4),
        );
        let expected = |name: &str, own, all| (name.to_owned(), own, all);
        assert_eq!(
            sums(&read(&text).unwrap()),
            [expected("main", 1, Some(100)), expected("a", 2, Some(22)), expected("b", 3, Some(7)), expected("leaf", 4, Some(4))]
        );
        let circle = text.replace("fn=leaf\n0 4\n", &format!("fn=leaf\n0 4\n{}", call("a", 9)));
        assert_eq!(
            sums(&read(&circle).unwrap()),
            [expected("main", 1, Some(100)), expected("a", 2, None), expected("b", 3, None), expected("leaf", 4, None)]
        );
    }

    #[test]
    fn what_is_damaged_is_said_with_its_line() {
        let head = "events: Ir\nfn=f\n";
        assert_eq!(wrong("events: Ir\n1 1\n"), "2: NoFunction");
        assert_eq!(wrong("fn=f\n1 1\n"), "2: NoEvents");
        assert_eq!(wrong(&format!("{head}1 1 2\n")), "3: TooManyNumbers");
        assert_eq!(wrong(&format!("{head}1 x\n")), "3: NoNumber");
        assert_eq!(wrong(&format!("{head}+x 1\n")), "3: Position");
        assert_eq!(wrong(&format!("{head}calls=1 2\n")), "3: NoCallee");
        assert_eq!(wrong(&format!("{head}cfn=g\ncalls=1 2\nfn=h\n")), "5: NoCallCosts");
        assert_eq!(wrong(&format!("{head}cfn=(9)\n")), "3: NoName(9)");
        assert_eq!(wrong(&format!("{head}1 {}\n1 1\n", i64::MAX)), "4: TooLarge");
        assert_eq!(wrong(&format!("{head}something\n")), "3: NotUnderstood");
        assert_eq!(wrong(&format!("{head}what=1\n")), "3: NotUnderstood");
        assert_eq!(wrong("version: 2\n"), "1: Version(\"2\")");
        assert_eq!(wrong(&"x".repeat(1 << 21)), "1: TooLong");
        assert_eq!(wrong("events: Cycles\n"), "1: Events(\"Cycles\")");
        assert!(matches!(read("# callgrind format\n"), Err(ProfileError::Empty)));
    }

    #[test]
    fn profiles_are_distinguished_from_logs() {
        assert!(is_profile(b"# callgrind format\nversion: 1\n"));
        assert!(is_profile(b"version: 1\ncreator: x\n\npositions: line\nevents: Ir\nfn=f\n"));
        assert!(!is_profile(b"1234 1700000000.0 read(3, \"events:\\n\", 8) = 8\nevents: Ir\n"));
        assert!(!is_profile(b"{\"events:\": 1}\n"));
        assert!(!is_profile(b""));
    }
}
