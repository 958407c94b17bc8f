//! Rows of `probe_events` from events, and pairs of them as rows of `probe_requests`.

use rustc_hash::FxHashMap;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, TableError,
    rows::{self, ProbeEventsColumns, ProbeRequestsColumns},
};

use crate::{
    conversion::Conversion,
    events::{ProbeEvent, Raw, until_nul},
    stacks::events::Of,
};

use crate::probe_list::{Argument, Kind, Probe, ProbeList, Request};

/// `TEXT_BYTES` of `spec.h`.
const TEXT_BYTES: usize = 128;
/// Name of the argument by which requests are matched across threads.
const ID: &str = "id";

/// A probe was reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached<'a> {
    fixed: ProbeEvent,
    rest: &'a [u8],
}

impl<'a> Reached<'a> {
    /// `None`: the event is broken.
    pub(super) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<ProbeEvent>()?;
        Some(Reached { fixed, rest })
    }

    /// Values of the arguments; `None` for those that could not be read.
    fn values(&self, arguments: &[Argument]) -> Vec<Option<Value>> {
        let numbers = |index: usize| Some(i64::from_le_bytes(*self.rest.get(8 * index..)?.first_chunk()?));
        let mut texts = self.rest.get(8 * arguments.len()..).unwrap_or_default().chunks(TEXT_BYTES);
        let value = |(index, argument): (usize, &Argument)| {
            let number = numbers(index)?;
            if !argument.kind.is_text() {
                return Some(Value::Number(number, argument.kind));
            }
            let text = texts.next()?;
            (number >= 0).then(|| Value::Text(String::from_utf8_lossy(until_nul(text)).into_owned()))
        };
        arguments.iter().enumerate().map(value).collect()
    }
}

/// Value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(i64, Kind),
    Text(String),
}

impl Value {
    fn json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => text.as_str().into(),
            // The upper part of the register, beyond the type, may contain anything.
            Value::Number(number, kind) => match kind {
                Kind::I8 => (*number as i8).into(),
                Kind::I16 => (*number as i16).into(),
                Kind::I32 => (*number as i32).into(),
                Kind::U8 => (*number as u8).into(),
                Kind::U16 => (*number as u16).into(),
                Kind::U32 => (*number as u32).into(),
                Kind::U64 => (*number as u64).into(),
                _ => (*number).into(),
            },
        }
    }
}

/// `{"name": value, ...}`; `None` without arguments.
fn json(arguments: &[Argument], values: &[Option<Value>]) -> Option<String> {
    let member = |(argument, value): (&Argument, &Option<Value>)| {
        let name = serde_json::Value::from(argument.name.as_str());
        let value = value.as_ref().map_or(serde_json::Value::Null, Value::json);
        format!("{name}:{value}")
    };
    let members: Vec<String> = arguments.iter().zip(values).map(member).collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

/// Identifies a request in progress: its index among the requested ones, and its thread or id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Thread(usize, u32),
    Id(usize, i64),
}

/// A request in progress.
struct Begun {
    ts_ns: i64,
    task: u32,
    args: Option<String>,
    /// How many times the function is active in its thread, by recursion.
    depth: u32,
}

/// Rows that are not written yet.
#[derive(Default)]
pub(super) struct ProbeRows {
    probe_list: ProbeList,
    events: Batch<ProbeEventsColumns>,
    requests: Batch<ProbeRequestsColumns>,
    begun: FxHashMap<Key, Begun>,
}

impl ProbeRows {
    pub(super) fn new(probe_list: ProbeList) -> Self {
        ProbeRows { probe_list, ..ProbeRows::default() }
    }

    pub(super) fn push(&mut self, reached: &Reached<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let ProbeEvent { stack, tid, cpu, probe: number, .. } = reached.fixed;
        conversion.seen(at_ns, at_ns);
        let stack = conversion.stack(stack, (tid, Of::Sample));
        let number = usize::from(number);
        let Some(probe) = self.probe_list.probes.get(number).cloned() else { return Ok(()) };
        let task = conversion.task(tid, at_ns) as u32;
        let values = reached.values(&probe.arguments);
        let args = json(&probe.arguments, &values);
        self.events.push(&rows::ProbeEvents {
            ts_ns: at_ns,
            task_id: task.cast_signed(),
            cpu: i32::from(cpu),
            probe: probe.name().into(),
            kind: probe.kind().into(),
            place: probe.place().into(),
            args: args.as_deref().map(Into::into),
            stack_id: Some(stack).filter(|stack| *stack >= 0),
        });
        self.request(number, &probe, (task, tid), at_ns, (&values, args));
        if self.requests.len() >= ROWS_PER_GROUP {
            conversion.recording.write_batch(&mut self.requests)?;
        }
        if self.events.len() >= ROWS_PER_GROUP { conversion.recording.write_batch(&mut self.events) } else { Ok(()) }
    }

    /// Begin and end requests at this probe.
    fn request(
        &mut self,
        number: usize,
        probe: &Probe,
        (task, tid): (u32, u32),
        at_ns: i64,
        (values, args): (&[Option<Value>], Option<String>),
    ) {
        let id = probe.arguments.iter().position(|argument| argument.name == ID).and_then(|index| values[index].clone());
        for index in 0..self.probe_list.requests.len() {
            let Request { begin, end, .. } = self.probe_list.requests[index];
            let key = match &id {
                Some(Value::Number(id, _)) if self.has_id(begin) && self.has_id(end) => Key::Id(index, *id),
                _ => Key::Thread(index, tid),
            };
            if number == end
                && let Some(begun) = self.begun.get_mut(&key)
            {
                begun.depth -= 1;
                if begun.depth == 0
                    && let Some(begun) = self.begun.remove(&key)
                {
                    self.add(index, &begun, Some(at_ns), args.clone());
                }
            }
            if number == begin {
                self.begin(index, key, Begun { ts_ns: at_ns, task, args: args.clone(), depth: 1 });
            }
        }
    }

    fn has_id(&self, probe: usize) -> bool {
        self.probe_list.probes.get(probe).is_some_and(|probe| probe.arguments.iter().any(|argument| argument.name == ID))
    }

    fn begin(&mut self, index: usize, key: Key, begun: Begun) {
        let Request { begin, end, .. } = self.probe_list.requests[index];
        let is_function = begin != end && self.probe_list.probes.get(end).is_some_and(|probe| probe.kind() == "return");
        if let Some(known) = self.begun.get_mut(&key) {
            if is_function {
                known.depth += 1;
                return;
            }
            // The earlier request has no end.
            if let Some(known) = self.begun.remove(&key) {
                self.add(index, &known, None, None);
            }
        }
        self.begun.insert(key, begun);
    }

    fn add(&mut self, index: usize, begun: &Begun, end_ns: Option<i64>, end_args: Option<String>) {
        self.requests.push(&rows::ProbeRequests {
            ts_ns: begun.ts_ns,
            dur_ns: end_ns.map(|end_ns| end_ns.saturating_sub(begun.ts_ns).max(0)),
            task_id: begun.task.cast_signed(),
            request: self.probe_list.requests[index].name.as_str().into(),
            args: begun.args.as_deref().map(Into::into),
            end_args: end_args.map(Into::into),
        });
    }

    /// Write the remaining rows. Requests that have not ended have no duration.
    pub(super) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let mut left: Vec<(Key, Begun)> = std::mem::take(&mut self.begun).into_iter().collect();
        left.sort_by_key(|(_, begun)| (begun.ts_ns, begun.task));
        for (Key::Thread(index, _) | Key::Id(index, _), begun) in left {
            self.add(index, &begun, None, None);
        }
        conversion.recording.write_batch(&mut self.events)?;
        conversion.recording.write_batch(&mut self.requests)
    }
}
