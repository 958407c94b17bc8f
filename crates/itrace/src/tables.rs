//! Writes the results of a follower as rows.

use rustc_hash::FxHashMap;
use sysdock_calls::action;
use sysdock_itrace_file::Access;
use sysdock_table::{
    Batch, Recording, TableError,
    rows::{self, Columns, Row},
};

use crate::{
    TraceFacts,
    code::Code,
    executions::ExecutionCounts,
    following::{At, Follower, Frame, How, Sink, Steps, Transition, entry_name},
    images::{Images, Mode},
    reuse::Reuse,
};

/// Rows in a row group.
const GROUP: usize = 1 << 17;
/// Approximate number of time intervals.
const INTERVALS: u64 = 256;
/// Number for the time outside of requests.
const OUTSIDE: i32 = 0;

type Of<R> = Batch<<R as Row>::Columns>;

#[derive(Default)]
struct Segment {
    first_step: u64,
    steps: Steps,
    loads: u64,
    stores: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Page {
    request: i32,
    task: u32,
    mode: Mode,
    is_data: bool,
    number: u64,
    interval: u32,
}

/// A request.
struct Request {
    id: i32,
    name: String,
    first: Steps,
    first_step: u64,
    end: Option<Steps>,
}

/// Collects rows and writes them.
pub(crate) struct Tables<'r> {
    recording: &'r mut Recording,
    facts: &'r TraceFacts,
    /// The first error; nothing is written after it.
    error: Option<TableError>,
    request: i32,
    requests: Vec<Request>,
    /// Between markers, if requests are delimited by the server's work: the name of the request,
    /// and the server.
    window: Option<(String, Option<u32>)>,
    steps: Steps,
    interval_steps: u64,
    at: Option<At>,
    segment: Segment,
    /// Number of loads and stores of the current block.
    accesses: [u64; 2],
    segments: Of<rows::TraceSegments<'static>>,
    calls: Of<rows::FunctionCalls<'static>>,
    transitions: Of<rows::FunctionTransitions<'static>>,
    entries: Vec<Entry>,
    switches: Of<rows::TaskSwitches>,
    pages: FxHashMap<Page, (u64, u32)>,
    /// Those of the current request, and those of earlier ones.
    executions: ExecutionCounts,
    executed: Vec<(i32, ExecutionCounts)>,
    reuse: Reuse,
    distances: Of<rows::ReuseDistances<'static>>,
    /// By request and path: number of calls, own steps, steps including called functions.
    paths: FxHashMap<(i32, u32), [u64; 3]>,
}

/// An entry of the kernel. Names of functions are known at the end.
struct Entry {
    request: i32,
    task: u32,
    call: Option<u64>,
    step: u64,
    kind: &'static str,
    function: Result<u32, String>,
    steps: Option<u64>,
}

impl<'r> Tables<'r> {
    pub(crate) fn new(recording: &'r mut Recording, facts: &'r TraceFacts, total_steps: u64) -> Tables<'r> {
        let mut tables = Tables {
            recording,
            facts,
            error: None,
            request: OUTSIDE,
            requests: Vec::new(),
            window: None,
            steps: Steps::default(),
            interval_steps: (total_steps / INTERVALS).next_power_of_two(),
            at: None,
            segment: Segment::default(),
            accesses: [0; 2],
            segments: Batch::default(),
            calls: Batch::default(),
            transitions: Batch::default(),
            entries: Vec::new(),
            switches: Batch::default(),
            pages: FxHashMap::default(),
            executions: ExecutionCounts::default(),
            executed: Vec::new(),
            reuse: Reuse::new(),
            distances: Batch::default(),
            paths: FxHashMap::default(),
        };
        if facts.requests.iter().all(|request| request.from_marker.is_none()) {
            let name = facts.requests.first().map_or("whole trace", |request| request.name.as_str());
            tables.begin(1, name.to_owned());
        }
        tables
    }

    fn begin(&mut self, id: i32, name: String) {
        self.request = id;
        self.requests.push(Request { id, name, first: self.steps, first_step: self.steps.single, end: None });
    }

    fn end_request(&mut self) {
        let steps = self.steps;
        let request_id = self.request;
        for class in self.reuse.take().into_iter().filter(|_| request_id != OUTSIDE) {
            self.distances.push(&rows::ReuseDistances {
                request_id,
                mode: class.mode.name().into(),
                kind: class.kind.into(),
                block_bytes: class.block_bytes,
                distance: class.distance,
                times: class.times as i64,
            });
        }
        if request_id != OUTSIDE {
            self.executed.push((request_id, std::mem::take(&mut self.executions)));
        }
        if let Some(request) = self.requests.last_mut() {
            request.end.get_or_insert(steps);
        }
    }

    fn end_segment(&mut self) {
        let Some(at) = self.at.take() else { return };
        let segment = std::mem::take(&mut self.segment);
        if self.request == OUTSIDE || segment.steps.single == 0 {
            return;
        }
        self.segments.push(&rows::TraceSegments {
            request_id: self.request,
            task_id: at.task as i32,
            mode: at.mode.name().into(),
            image_id: at.image as i32,
            first_step: segment.first_step as i64,
            steps: segment.steps.single as i64,
            steps_collapsed: segment.steps.collapsed as i64,
            loads: segment.loads as i64,
            stores: segment.stores as i64,
        });
        write_full(self.recording, &mut self.segments, &mut self.error);
    }

    fn count(&mut self, at: At, is_data: bool, address: u64, references: u64) {
        if self.request == OUTSIDE || references == 0 {
            return;
        }
        let page = Page {
            request: self.request,
            task: at.task,
            mode: at.mode,
            is_data,
            number: (address << 1) >> 13,
            interval: (at.step / self.interval_steps) as u32,
        };
        self.pages.entry(page).or_insert((0, at.image)).0 += references;
    }

    /// Write the remaining rows, and the tables that are known at the end only.
    ///
    /// Returns the number of requests.
    pub(crate) fn finish(mut self, follower: &Follower<'_>) -> Result<usize, TableError> {
        self.end_segment();
        self.end_request();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.recording.write_batch(&mut self.segments)?;
        self.recording.write_batch(&mut self.calls)?;
        self.recording.write_batch(&mut self.transitions)?;
        self.recording.write_batch(&mut self.switches)?;
        self.recording.write_batch(&mut self.distances)?;
        self.write_pages()?;
        self.write_paths(follower)?;
        self.write_lines(follower)?;
        self.write_entries(&follower.images)?;
        write_requests(self.recording, &self.requests)?;
        write_tasks(self.recording, self.facts, follower)?;
        write_images(self.recording, &follower.images)?;
        Ok(self.requests.len())
    }

    fn write_pages(&mut self) -> Result<(), TableError> {
        let mut pages: Vec<_> = std::mem::take(&mut self.pages).into_iter().collect();
        pages.sort_by_key(|(page, _)| (page.request, page.task, page.number, page.interval, page.is_data, page.mode.name()));
        let interval_steps = self.interval_steps as i64;
        for part in pages.chunks(GROUP) {
            self.recording.write_rows(part.iter().map(|(page, (references, image))| rows::PageReferences {
                request_id: page.request,
                task_id: page.task as i32,
                mode: page.mode.name().into(),
                kind: if page.is_data { "data" } else { "instruction" }.into(),
                page: page.number as i64,
                interval: page.interval as i32,
                interval_steps,
                image_id: *image as i32,
                times: *references as i64,
            }))?;
        }
        Ok(())
    }

    fn write_paths(&mut self, follower: &Follower<'_>) -> Result<(), TableError> {
        // A path that only leads to others needs a row, too: it is their parent.
        for (request, path) in self.paths.keys().copied().collect::<Vec<_>>() {
            let mut parent = follower.paths[path as usize].parent;
            while let Some(number) = parent {
                self.paths.entry((request, number)).or_default();
                parent = follower.paths[number as usize].parent;
            }
        }
        let mut paths: Vec<_> = std::mem::take(&mut self.paths).into_iter().collect();
        paths.sort_unstable();
        for part in paths.chunks(GROUP) {
            self.recording.write_rows(part.iter().map(|((request, number), [times, own, total])| {
                let path = follower.paths[*number as usize];
                let (depth, text) = path_text(follower, *number);
                rows::CallPaths {
                    request_id: *request,
                    path_id: *number as i32,
                    parent_id: path.parent.map(|parent| parent as i32),
                    task_id: path.task as i32,
                    function_id: path.function as i32,
                    depth,
                    path: text.into(),
                    times: *times as i64,
                    steps: *own as i64,
                    steps_inclusive: *total as i64,
                }
            }))?;
        }
        Ok(())
    }

    fn write_lines(&mut self, follower: &Follower<'_>) -> Result<(), TableError> {
        for (request_id, mut executions) in std::mem::take(&mut self.executed) {
            let lines = executions.take_lines(follower);
            self.recording.write_rows(lines.iter().map(|((function, path, line), steps)| rows::SourceLines {
                request_id,
                function_id: *function as i32,
                path: path.as_str().into(),
                line: *line as i32,
                steps: *steps as i64,
            }))?;
        }
        Ok(())
    }

    fn write_entries(&mut self, images: &Images) -> Result<(), TableError> {
        for part in self.entries.chunks(GROUP) {
            self.recording.write_rows(part.iter().map(|entry| rows::KernelEntries {
                request_id: entry.request,
                task_id: entry.task as i32,
                call_id: entry.call.map(|call| call as i64),
                step: entry.step as i64,
                kind: entry.kind.into(),
                name: match &entry.function {
                    Ok(function) => entry_name(&images.functions[*function as usize].name).into(),
                    Err(name) => name.into(),
                },
                steps: entry.steps.map(|steps| steps as i64),
            }))?;
        }
        Ok(())
    }
}

/// Write rows if they fill a row group. After an error, they are dropped.
fn write_full<C: Columns>(recording: &mut Recording, batch: &mut Batch<C>, error: &mut Option<TableError>) {
    if batch.len() >= GROUP
        && let Err(failed) = recording.write_batch(batch)
    {
        error.get_or_insert(failed);
    }
}

/// Depth and names of a path, the outermost function first.
fn path_text(follower: &Follower<'_>, path: u32) -> (i32, String) {
    let mut names = Vec::new();
    let mut next = Some(path);
    while let Some(number) = next {
        let path = follower.paths[number as usize];
        names.push(follower.images.functions[path.function as usize].name.as_str());
        next = path.parent;
    }
    names.reverse();
    (names.len() as i32 - 1, names.join(";"))
}

fn write_requests(recording: &mut Recording, requests: &[Request]) -> Result<(), TableError> {
    recording.write_rows(requests.iter().map(|request| {
        let end = request.end.unwrap_or(request.first);
        rows::TracedRequests {
            request_id: request.id,
            name: (&*request.name).into(),
            first_step: request.first_step as i64,
            steps: (end.single - request.first.single) as i64,
            steps_collapsed: Some((end.collapsed - request.first.collapsed) as i64),
        }
    }))
}

fn write_tasks(recording: &mut Recording, facts: &TraceFacts, follower: &Follower<'_>) -> Result<(), TableError> {
    recording.write_rows(follower.tasks.iter().enumerate().map(|(number, task)| {
        let fact = task.fact.map(|fact| &facts.tasks[fact]);
        rows::TracedTasks {
            task_id: number as i32,
            pid: fact.map(|fact| fact.pid),
            tgid: fact.map(|fact| fact.tgid),
            comm: fact.map(|fact| (&*fact.comm).into()),
            steps: task.steps as i64,
        }
    }))
}

fn write_images(recording: &mut Recording, images: &Images) -> Result<(), TableError> {
    recording.write_rows(images.images.iter().enumerate().map(|(number, image)| rows::Images {
        image_id: number as i32,
        path: (&*image.path).into(),
        mode: image.mode.name().into(),
        build: image.build_id.as_deref().map(Into::into),
        symbols: (&*image.symbols).into(),
    }))?;
    recording.write_rows(images.functions.iter().enumerate().map(|(number, function)| rows::TracedFunctions {
        function_id: number as i32,
        image_id: function.image as i32,
        name: (&*function.name).into(),
        start: Some((function.start & (i64::MAX as u64)) as i64),
    }))
}

/// Whether a server gets a connection from this system call.
fn accepts(call: &str) -> bool {
    action(call) == "accept"
}

/// Whether a server waits in this system call for its next task.
fn waits(call: &str) -> bool {
    matches!(action(call), "accept" | "poll")
}

impl Sink for Tables<'_> {
    fn block(&mut self, at: At, block: &Code, executed: u32, steps: Steps) {
        let same = self.at.is_some_and(|before| at.is_in_segment_of(&before));
        if !same {
            self.end_segment();
            self.segment = Segment { first_step: at.step, ..Segment::default() };
            self.at = Some(at);
        }
        let [loads, stores] = std::mem::take(&mut self.accesses);
        self.segment.loads += loads;
        self.segment.stores += stores;
        self.segment.steps.single += steps.single;
        self.segment.steps.collapsed += steps.collapsed;
        self.steps.single += steps.single;
        self.steps.collapsed += steps.collapsed;
        if executed > 0 {
            self.reuse.executed(&at, block);
            if self.request != OUTSIDE {
                self.executions.add(&at, block, executed, steps);
            }
        }
        // An instruction that was counted before, or that found no iteration left, references
        // nothing.
        let counted = u64::from(executed).min(steps.single);
        let first = counted.min(u64::from(block.on_first_page));
        let rest = counted - first;
        // Iterations reference the page of their instruction, which is the last one.
        let more = steps.single - counted;
        let (first, rest) = if rest == 0 { (first + more, 0) } else { (first, rest + more) };
        self.count(at, false, block.address, first);
        self.count(at, false, block.end.wrapping_sub(1), rest);
    }

    fn access(&mut self, at: At, access: &Access) {
        self.accesses[usize::from(access.store)] += 1;
        self.reuse.accessed(&at, access.address);
        self.count(at, true, access.address, 1);
    }

    fn transition(&mut self, task: u32, step: u64, from: u32, to: u32, how: Transition, depth: u32) {
        if self.request == OUTSIDE {
            return;
        }
        self.transitions.push(&rows::FunctionTransitions {
            request_id: self.request,
            task_id: task as i32,
            step: step as i64,
            previous_function_id: from as i32,
            function_id: to as i32,
            how: how.name().into(),
            depth: depth as i32,
        });
        write_full(self.recording, &mut self.transitions, &mut self.error);
    }

    fn ended(&mut self, task: u32, frame: &Frame, depth: u32, returned: bool) {
        if self.request == OUTSIDE || frame.total == 0 {
            return;
        }
        let sums = self.paths.entry((self.request, frame.path)).or_default();
        sums[0] += 1;
        sums[1] += frame.own;
        sums[2] += frame.total;
        self.calls.push(&rows::FunctionCalls {
            request_id: self.request,
            call_id: frame.call as i64,
            caller_id: frame.caller.map(|caller| caller as i64),
            task_id: task as i32,
            function_id: frame.function as i32,
            how: frame.how.name().into(),
            depth: depth as i32,
            first_step: frame.first_step as i64,
            steps: frame.own as i64,
            steps_inclusive: frame.total as i64,
            returned,
            outermost: frame.outermost,
        });
        write_full(self.recording, &mut self.calls, &mut self.error);
        if matches!(frame.how, How::SystemCall | How::Interrupt | How::Exception) {
            self.entries.push(Entry {
                request: self.request,
                task,
                call: Some(frame.call),
                step: frame.first_step,
                kind: frame.how.name(),
                function: Ok(frame.entered.filter(|_| frame.how == How::SystemCall).unwrap_or(frame.function)),
                steps: Some(frame.total),
            });
        }
    }

    fn switched(&mut self, from: u32, to: u32, step: u64) {
        if self.request == OUTSIDE {
            return;
        }
        self.switches.push(&rows::TaskSwitches {
            request_id: self.request,
            step: step as i64,
            previous_task_id: from as i32,
            task_id: to as i32,
        });
    }

    fn untraced(&mut self, task: u32, step: u64, number: u32) {
        if self.request == OUTSIDE {
            return;
        }
        let name = crate::system_call_name(number);
        self.entries.push(Entry {
            request: self.request,
            task,
            call: None,
            step,
            kind: "system_call",
            function: Err(name),
            steps: None,
        });
    }

    fn signal(&mut self, task: u32, step: u64, number: u32) {
        if self.request == OUTSIDE {
            return;
        }
        // 0: the recorder does not know which signal.
        let name = if number == 0 { "signal".to_owned() } else { format!("signal {number}") };
        self.entries.push(Entry {
            request: self.request,
            task,
            call: None,
            step,
            kind: "signal",
            function: Err(name),
            steps: None,
        });
    }

    fn is_cut_by_call(&self, task: u32, call: &str, leaves: bool) -> bool {
        let Some((_, server)) = &self.window else { return false };
        *server == Some(task) && waits(call) || leaves && server.is_none() && accepts(call)
    }

    fn cut_by_call(&mut self, task: u32, call: &str, leaves: bool) {
        self.end_segment();
        self.end_request();
        self.request = OUTSIDE;
        if let Some((name, server)) = self.window.as_mut().filter(|_| leaves) {
            *server = Some(task);
            let name = format!("{name}, after {call}");
            self.begin(self.requests.len() as i32 + 1, name);
        }
    }

    fn is_cut(&self, value: u32) -> bool {
        self.facts.requests.iter().any(|request| [request.from_marker, request.to_marker].contains(&Some(value)))
    }

    fn marker(&mut self, value: u32) {
        if !self.is_cut(value) {
            return;
        }
        self.end_segment();
        self.end_request();
        self.request = OUTSIDE;
        let begins = self.facts.requests.iter().find(|request| request.from_marker == Some(value));
        if self.facts.cut_by_server {
            self.window = begins.map(|request| (request.name.clone(), None));
        } else if let Some(request) = begins {
            self.begin(request.id, request.name.clone());
        }
    }
}
