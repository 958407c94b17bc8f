//! Converts the time stamps of a log to nanoseconds since the epoch.

use chrono::{Local, LocalResult, NaiveDate, NaiveTime, TimeDelta, TimeZone};

use sysdock_table::{Facts, facts::clock as facts};

use crate::line::Stamp;

const DAY_NS: i64 = 86_400_000_000_000;
const HOUR_NS: i64 = 3_600_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// Converts time stamps to times. There is one per recording; lines are passed in the order in
/// which they were printed.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Latest possible time of the last line: the log's modification time. Used as the date of logs
    /// without one.
    written_ns: i64,
    /// Date of the first line, if the user gave it.
    date: Option<NaiveDate>,
    kind: Option<Form>,
    decimals: u8,
    /// Date of the last stamp (`TimeOfDay`) and start of its hour. When clocks change, an hour
    /// occurs twice or not at all.
    day: NaiveDate,
    hour: i64,
    hour_ns: i64,
    last_of_day_ns: i64,
    now_ns: i64,
    /// Number of times that stamps ran back by more than a second, and the largest such step.
    steps_back: u64,
    largest_step_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Epoch,
    TimeOfDay,
    Relative,
    Order,
}

impl Clock {
    pub(crate) fn new(written_ns: i64, date: Option<NaiveDate>) -> Self {
        Clock {
            written_ns,
            date,
            kind: None,
            decimals: 0,
            day: NaiveDate::default(),
            hour: -1,
            hour_ns: 0,
            last_of_day_ns: 0,
            now_ns: 0,
            steps_back: 0,
            largest_step_ns: 0,
        }
    }

    /// Whether any line had a stamp so far.
    pub(crate) fn has_stamps(&self) -> bool {
        self.kind.is_some_and(|kind| kind != Form::Order)
    }

    /// Choose the form of the clock by the first events of a log: what precedes the first stamp, such
    /// as a remark of strace or the prompt of a shell, has its time. Until there is an event, the
    /// form stays unknown.
    pub(crate) fn begin(&mut self, mut events: impl Iterator<Item = (Option<Stamp>, u8)> + Clone) {
        if self.kind.is_some() {
            return;
        }
        let stamped = events.clone().find(|(stamp, _)| stamp.is_some());
        if let Some((stamp, decimals)) = stamped.or_else(|| events.next()) {
            self.start(stamp, decimals);
        }
    }

    /// The time of a line.
    #[inline]
    pub(crate) fn time(&mut self, stamp: Option<Stamp>) -> i64 {
        let before_ns = self.now_ns;
        self.now_ns = match stamp {
            Some(Stamp::Epoch(ns)) => ns,
            Some(Stamp::TimeOfDay(ns)) => self.time_of_day(ns),
            Some(Stamp::SinceLast(ns)) => self.now_ns.saturating_add(ns),
            // Without a clock, lines are numbered; in a log with stamps, a line without one has the
            // time of the line before.
            None if self.kind == Some(Form::Order) => self.now_ns + 1,
            None => self.now_ns,
        };
        if self.now_ns < before_ns.saturating_sub(SECOND_NS) {
            self.steps_back += 1;
            self.largest_step_ns = self.largest_step_ns.max(before_ns.saturating_sub(self.now_ns));
        }
        self.now_ns
    }

    /// The description of the clock in recording.json.
    pub(crate) fn describe(&self, has_durations: bool) -> sysdock_table::Clock {
        let resolution_ns = 10i64.pow(9 - u32::from(self.decimals.min(9)));
        let (kind, resolution_ns, notes) = match self.kind.unwrap_or(Form::Order) {
            Form::Epoch => ("epoch", resolution_ns, Vec::new()),
            Form::TimeOfDay if self.date.is_some() => ("time_of_day", resolution_ns, vec![facts::date_given()]),
            Form::TimeOfDay => ("time_of_day", resolution_ns, vec![facts::times_of_day(), facts::date_inferred()]),
            Form::Relative => ("relative", resolution_ns, vec![facts::time_differences(), facts::from_first_line()]),
            Form::Order => ("order", 1, vec![facts::no_clock(), facts::lines_only()]),
        };
        let mut note: Facts = notes.into_iter().collect();
        if self.steps_back > 0 {
            note.push(facts::runs_back(self.steps_back, self.largest_step_ns));
        }
        sysdock_table::Clock {
            includes_tracer: true,
            kind: kind.into(),
            resolution_ns,
            has_durations,
            durations: if has_durations { "elapsed" } else { "none" }.into(),
            stamps: "entry".into(),
            note,
        }
    }

    fn start(&mut self, stamp: Option<Stamp>, decimals: u8) {
        self.decimals = decimals;
        self.kind = Some(match stamp {
            Some(Stamp::Epoch(_)) => Form::Epoch,
            Some(Stamp::SinceLast(_)) => Form::Relative,
            None => Form::Order,
            Some(Stamp::TimeOfDay(of_day_ns)) => {
                self.day = self.first_day(of_day_ns);
                self.last_of_day_ns = of_day_ns;
                self.now_ns = self.time_of_day(of_day_ns);
                Form::TimeOfDay
            }
        });
        if let Some(Stamp::Epoch(ns)) = stamp {
            self.now_ns = ns;
        }
    }

    /// Date of the first line: the given one, or the latest date at which this time of day is not
    /// after the log's modification time. A log that spans several days without dates is therefore
    /// dated too late by whole days.
    fn first_day(&self, of_day_ns: i64) -> NaiveDate {
        let day = self.date.unwrap_or_else(|| Local.timestamp_nanos(self.written_ns).date_naive());
        let later = hour_start(day, of_day_ns / HOUR_NS, false) + of_day_ns % HOUR_NS > self.written_ns.saturating_add(SECOND_NS);
        if self.date.is_none() && later { day - TimeDelta::days(1) } else { day }
    }

    /// A step back by more than half a day is taken as midnight; smaller steps are clock
    /// corrections or lines of other threads. A step back into an hour that occurs twice is the end
    /// of daylight saving time.
    fn time_of_day(&mut self, of_day_ns: i64) -> i64 {
        if of_day_ns + DAY_NS / 2 < self.last_of_day_ns {
            self.day = self.day.succ_opt().unwrap_or(self.day);
            self.hour = -1;
        }
        let hour = of_day_ns / HOUR_NS;
        let again = hour == self.hour && of_day_ns + HOUR_NS / 2 < self.last_of_day_ns;
        if hour != self.hour || again {
            self.hour = hour;
            self.hour_ns = hour_start(self.day, hour, again);
        }
        self.last_of_day_ns = of_day_ns;
        self.hour_ns + of_day_ns % HOUR_NS
    }
}

/// When an hour of a day began in this machine's time zone; `again` selects the second occurrence
/// of an hour that occurs twice.
fn hour_start(day: NaiveDate, hour: i64, again: bool) -> i64 {
    // One second later, because chrono reports both results at the very end of an hour that occurs
    // twice.
    let second = TimeDelta::seconds(1);
    let local = day.and_time(NaiveTime::MIN) + TimeDelta::hours(hour) + second;
    let time = match Local.from_local_datetime(&local) {
        LocalResult::Single(time) => Some(time),
        LocalResult::Ambiguous(one, other) => Some(if again { one.max(other) } else { one.min(other) }),
        // The hour was skipped when clocks were set forward.
        LocalResult::None => {
            Local.from_local_datetime(&(local - TimeDelta::hours(1))).earliest().map(|time| time + TimeDelta::hours(1))
        }
    };
    time.and_then(|time| (time - second).timestamp_nanos_opt()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(mut clock: Clock, stamp: Option<Stamp>) -> Clock {
        clock.begin([(stamp, 6)].into_iter());
        clock
    }

    fn of_day(h: i64, m: i64) -> Stamp {
        Stamp::TimeOfDay((h * 60 + m) * 60_000_000_000)
    }

    #[test]
    fn a_log_over_midnight_goes_on() {
        let noon = Local.with_ymd_and_hms(2026, 3, 10, 12, 0, 0).unwrap().timestamp_nanos_opt().unwrap();
        let mut clock = begun(Clock::new(noon, None), Some(of_day(23, 59)));
        let first = clock.time(Some(of_day(23, 59)));
        assert_eq!(first, noon - 12 * 3_600_000_000_000 - 60_000_000_000, "the day before the log was written");
        assert_eq!(clock.time(Some(of_day(0, 1))) - first, 120_000_000_000);
        assert_eq!(clock.describe(true).kind, "time_of_day");
        assert_eq!(clock.describe(true).resolution_ns, 1_000);
    }

    #[test]
    fn relative_times_add_up() {
        let mut clock = begun(Clock::new(0, None), Some(Stamp::SinceLast(0)));
        clock.time(Some(Stamp::SinceLast(0)));
        clock.time(Some(Stamp::SinceLast(5)));
        assert_eq!(clock.time(Some(Stamp::SinceLast(7))), 12);
    }

    #[test]
    fn lines_before_the_first_stamp_have_its_time() {
        let mut clock = Clock::new(99, None);
        clock.begin([].into_iter());
        assert_eq!(clock.time(None), 0);
        clock.begin([(None, 0), (Some(Stamp::Epoch(1_700_000_000_000_000_000)), 6)].into_iter());
        assert_eq!((clock.time(None), clock.describe(true).kind.as_str()), (1_700_000_000_000_000_000, "epoch"));
    }

    #[test]
    fn without_a_clock_lines_are_counted() {
        let mut clock = begun(Clock::new(99, None), None);
        assert_eq!((clock.time(None), clock.time(None)), (1, 2));
        assert_eq!(clock.describe(false).note.codes(), ["clock/no_clock", "clock/lines_only"]);
    }
}
