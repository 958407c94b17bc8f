//! From the stamps of a log to nanoseconds since the epoch.

use chrono::{Local, NaiveDate, NaiveTime, TimeDelta, TimeZone};

use crate::line::Stamp;

const DAY_NS: i64 = 86_400_000_000_000;

/// Turns stamps into times. One per recording, fed with lines in the order in which they were printed.
#[derive(Debug)]
pub(crate) struct Clock {
    /// When the last line was written at the latest: the log's modification time. Dates a log that has none.
    written_ns: i64,
    /// Date of the first line, where the user gave it.
    date: Option<NaiveDate>,
    kind: Option<Form>,
    decimals: u8,
    /// Midnight before the first stamp (`TimeOfDay`).
    midnight_ns: i64,
    last_of_day_ns: i64,
    now_ns: i64,
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
        Clock { written_ns, date, kind: None, decimals: 0, midnight_ns: 0, last_of_day_ns: 0, now_ns: 0 }
    }

    /// The time of a line.
    pub(crate) fn time(&mut self, stamp: Option<Stamp>, decimals: u8) -> i64 {
        if self.kind.is_none() {
            self.start(stamp, decimals);
        }
        self.now_ns = match stamp {
            Some(Stamp::Epoch(ns)) => ns,
            Some(Stamp::TimeOfDay(ns)) => self.time_of_day(ns),
            Some(Stamp::SinceLast(ns)) => self.now_ns + ns,
            // Without any clock the order of lines is all there is; a line without a stamp in a log with stamps keeps the last.
            None if self.kind == Some(Form::Order) => self.now_ns + 1,
            None => self.now_ns,
        };
        self.now_ns
    }

    /// What recording.json says about it.
    pub(crate) fn describe(&self, has_durations: bool) -> sysdock_table::Clock {
        let resolution_ns = 10i64.pow(9 - u32::from(self.decimals.min(9)));
        let (kind, resolution_ns, note) = match self.kind.unwrap_or(Form::Order) {
            Form::Epoch => ("epoch", resolution_ns, None),
            Form::TimeOfDay if self.date.is_some() => ("time_of_day", resolution_ns, Some("the date was given by the user")),
            Form::TimeOfDay => {
                let note = "the log has times of day only; the date was inferred from the log's modification time, the zone is this machine's";
                ("time_of_day", resolution_ns, Some(note))
            }
            Form::Relative => {
                ("relative", resolution_ns, Some("the log has time differences only; times count from its first line"))
            }
            Form::Order => ("order", 1, Some("the log has no clock; times only count lines")),
        };
        sysdock_table::Clock { kind: kind.into(), resolution_ns, has_durations, note: note.map(Into::into) }
    }

    fn start(&mut self, stamp: Option<Stamp>, decimals: u8) {
        self.decimals = decimals;
        self.kind = Some(match stamp {
            Some(Stamp::Epoch(_)) => Form::Epoch,
            Some(Stamp::SinceLast(_)) => Form::Relative,
            None => Form::Order,
            Some(Stamp::TimeOfDay(of_day_ns)) => {
                self.midnight_ns = self.first_midnight(of_day_ns);
                self.last_of_day_ns = of_day_ns;
                Form::TimeOfDay
            }
        });
    }

    /// Midnight before the first line: on the date given, else such that the line is the last one of its time of day before the log
    /// was written. A log that spans days without a date is therefore dated too late, by whole days.
    fn first_midnight(&self, of_day_ns: i64) -> i64 {
        let date = self.date.unwrap_or_else(|| Local.timestamp_nanos(self.written_ns).date_naive());
        let midnight = |date: NaiveDate| {
            let local = Local.from_local_datetime(&date.and_time(NaiveTime::MIN)).earliest();
            local.and_then(|time| time.timestamp_nanos_opt()).unwrap_or(0)
        };
        let first = midnight(date);
        if self.date.is_none() && first + of_day_ns > self.written_ns + 1_000_000_000 {
            return midnight(date - TimeDelta::days(1));
        }
        first
    }

    /// A step back by more than half a day is midnight; smaller ones are clock corrections and lines of other threads.
    fn time_of_day(&mut self, of_day_ns: i64) -> i64 {
        if of_day_ns + DAY_NS / 2 < self.last_of_day_ns {
            self.midnight_ns += DAY_NS;
        }
        self.last_of_day_ns = of_day_ns;
        self.midnight_ns + of_day_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_day(h: i64, m: i64) -> Stamp {
        Stamp::TimeOfDay((h * 60 + m) * 60_000_000_000)
    }

    #[test]
    fn a_log_over_midnight_goes_on() {
        let noon = Local.with_ymd_and_hms(2026, 3, 10, 12, 0, 0).unwrap().timestamp_nanos_opt().unwrap();
        let mut clock = Clock::new(noon, None);
        let first = clock.time(Some(of_day(23, 59)), 6);
        assert_eq!(first, noon - 12 * 3_600_000_000_000 - 60_000_000_000, "the day before the log was written");
        assert_eq!(clock.time(Some(of_day(0, 1)), 6) - first, 120_000_000_000);
        assert_eq!(clock.describe(true).kind, "time_of_day");
        assert_eq!(clock.describe(true).resolution_ns, 1_000);
    }

    #[test]
    fn relative_times_add_up() {
        let mut clock = Clock::new(0, None);
        clock.time(Some(Stamp::SinceLast(0)), 6);
        clock.time(Some(Stamp::SinceLast(5)), 6);
        assert_eq!(clock.time(Some(Stamp::SinceLast(7)), 6), 12);
    }

    #[test]
    fn without_a_clock_lines_are_counted() {
        let mut clock = Clock::new(99, None);
        assert_eq!((clock.time(None, 0), clock.time(None, 0)), (1, 2));
        assert!(clock.describe(false).note.unwrap().contains("no clock"));
    }
}
