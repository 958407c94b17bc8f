//! `top`: shows the activity of the machine, updated each second. [`views`] make tables of the
//! activity since the last time, [`table`] sorts, filters and writes them, [`screen`] has the
//! terminal. A view that needs programs in the kernel has them only while it is shown.

mod cgroups;
mod devices;
mod files;
mod locks;
mod processes;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod views;

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use crate::{
    arguments::{Top, TopFormat, TopView},
    command::Exit,
    messages::Message,
    signals,
};
use screen::{Key, Screen};
use table::{Chosen, Table};
use views::Shown;

/// Number of rows of `--once` as text, by default.
const TEXT_ROWS: usize = 20;
/// Time until the first table of a view, if intervals are longer.
const SOON: Duration = Duration::from_millis(250);

/// State that the user may change while it runs.
struct State {
    shown: Shown,
    chosen: Chosen,
    /// The last table; `None`: there is none yet, or the view states the reason.
    table: Option<Table>,
    is_paused: bool,
    /// A filter is being typed.
    is_typing: bool,
    is_over: bool,
    /// The view has just begun.
    is_new: bool,
}

/// Show the activity of the machine.
pub(crate) fn run(arguments: &Top) -> Result<Exit, Message> {
    let shown = Shown::new(arguments.view, arguments.calls);
    let chosen = Chosen { sort: arguments.sort.clone(), filter: arguments.filter.clone().unwrap_or_default() };
    if let Some(sort) = &chosen.sort {
        shown.columns().iter().find(|column| column.name == sort).ok_or_else(|| no_such_column(sort, &shown))?;
    }
    signals::count_signals();
    if arguments.once {
        return once(arguments, shown, &chosen);
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Message::new("top: standard input and output are not a terminal", "--once prints one interval and ends"));
    }
    let state = State { shown, chosen, table: None, is_paused: false, is_typing: false, is_over: false, is_new: false };
    watch(state, arguments.interval)
}

fn no_such_column(sort: &str, shown: &Shown) -> Message {
    let names: Vec<&str> = shown.columns().iter().map(|column| column.name).collect();
    Message::new(format!("--sort {sort}: no such column in this view"), format!("there are {}", names.join(", ")))
}

/// A signal that requests an end, if one came.
fn end_signal() -> Option<i32> {
    signals::end_requests(&signals::Counts::default()).first().copied()
}

/// Print one interval.
fn once(arguments: &Top, mut shown: Shown, chosen: &Chosen) -> Result<Exit, Message> {
    shown.table()?;
    let end = Instant::now() + arguments.interval;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::sleep(left.min(Duration::from_millis(100)));
        if let Some(signal) = end_signal() {
            return Ok(Exit::Signal(signal));
        }
    }
    let Some(table) = shown.table()? else { return Ok(Exit::Code(0)) };
    let text = match arguments.format {
        TopFormat::Json => table.json(chosen, arguments.limit),
        TopFormat::Text => table.text(chosen, Some(arguments.limit.unwrap_or(TEXT_ROWS))),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // A reader that has closed the pipe wants no more.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Message::bare(format!("standard output: {error}"))),
        _ => Ok(Exit::Code(0)),
    }
}

/// Update the screen until the user quits.
fn watch(mut state: State, interval: Duration) -> Result<Exit, Message> {
    let failed = |error: io::Error| Message::bare(format!("the terminal: {error}"));
    let screen = Screen::begin().map_err(failed)?;
    let mut next = Instant::now();
    loop {
        if Instant::now() >= next {
            next = Instant::now() + state.measure(interval);
        }
        let (width, height) = screen.size();
        screen.draw(&frame(&state, width, height)).map_err(failed)?;
        // If the terminal has disappeared, no reader is left.
        let Ok(keys) = screen.keys(next.saturating_duration_since(Instant::now())) else { return Ok(Exit::Code(0)) };
        if let Some(signal) = end_signal() {
            return Ok(Exit::Signal(signal));
        }
        keys.into_iter().for_each(|key| press(&mut state, key));
        if state.is_over {
            return Ok(Exit::Code(0));
        }
        if state.is_new {
            (next, state.is_new) = (Instant::now(), false);
        }
    }
}

impl State {
    /// Make a table of the activity since the last time. Returns the time until the next one.
    fn measure(&mut self, interval: Duration) -> Duration {
        if self.is_paused || self.shown.refusal().is_some() {
            return interval;
        }
        match self.shown.table() {
            // A new view shows something soon.
            Ok(None) => return interval.min(SOON),
            Ok(table) => self.table = table,
            Err(_) => self.table = None,
        }
        interval
    }

    /// Begin another view, or the same one with other columns.
    fn begin_anew(&mut self) {
        (self.table, self.chosen.sort, self.is_paused, self.is_new) = (None, None, false, true);
    }
}

fn press(state: &mut State, key: Key) {
    if state.is_typing {
        return type_filter(state, key);
    }
    match key {
        Key::Letter('q') | Key::Interrupt => state.is_over = true,
        Key::Letter('p') => turn(state, TopView::Process),
        Key::Letter('c') => turn(state, TopView::Cgroup),
        Key::Letter('f') => turn(state, TopView::File),
        Key::Letter('d') => turn(state, TopView::Device),
        Key::Letter('l') => turn(state, TopView::Lock),
        Key::Letter('y') => {
            state.shown.turn_calls();
            state.begin_anew();
        }
        Key::Letter('s' | '>') => state.chosen.sort = Some(state.shown.neighbour(state.chosen.sort.as_deref(), 1)),
        Key::Letter('<') => state.chosen.sort = Some(state.shown.neighbour(state.chosen.sort.as_deref(), -1)),
        Key::Letter('/') => {
            state.is_typing = true;
            state.chosen.filter.clear();
        }
        Key::Letter(' ') => state.is_paused = !state.is_paused,
        Key::Escape => state.chosen.filter.clear(),
        _ => {}
    }
}

fn turn(state: &mut State, view: TopView) {
    if state.shown.view() != view {
        state.shown.turn(view);
        state.begin_anew();
    }
}

fn type_filter(state: &mut State, key: Key) {
    match key {
        Key::Letter(letter) => state.chosen.filter.push(letter),
        Key::Backspace => _ = state.chosen.filter.pop(),
        Key::Enter => state.is_typing = false,
        Key::Escape => {
            state.is_typing = false;
            state.chosen.filter.clear();
        }
        Key::Interrupt => state.is_over = true,
        Key::Other => {}
    }
}

/// Lines of the screen, none longer than its width.
fn frame(state: &State, width: usize, height: usize) -> Vec<String> {
    const KEYS: &str = "p c f d l: view   s < >: sort   /: filter   y: calls   space: pause   q: quit";
    let mut lines = vec![head(state)];
    let room = height.saturating_sub(2);
    match (&state.table, state.shown.refusal()) {
        (_, Some(message)) => lines.extend(message.lines().map(String::from)),
        (Some(table), None) => lines.extend(table.lines(&state.chosen, width, room)),
        (None, None) => lines.push("measuring ...".to_string()),
    }
    lines.truncate(room + 1);
    lines.resize(room + 1, String::new());
    lines.push(if state.is_typing { format!("filter: {}_", state.chosen.filter) } else { KEYS.to_string() });
    lines.iter().map(|line| table::cut(line, width)).collect()
}

fn head(state: &State) -> String {
    let sort = state.shown.sort(state.chosen.sort.as_deref());
    let mut text = format!("sysdock top  by {}  sort {sort}", state.shown.view().name());
    if let Some(table) = &state.table {
        text += &format!("  {:.1} s", table.interval.as_secs_f64());
        if table.lost > 0 {
            text += &format!("  LOST {}", table.lost);
        }
    }
    if !state.chosen.filter.is_empty() {
        text += &format!("  filter {}", state.chosen.filter);
    }
    if state.is_paused { text + "  PAUSED" } else { text }
}
