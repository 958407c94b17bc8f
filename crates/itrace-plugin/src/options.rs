//! Options of the plugin: `-plugin libsysdock_itrace_plugin.so,out=trace.sdit,...`.

use std::path::PathBuf;

use crate::messages::PluginError;

/// Options, each `key=value`.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    /// `out=FILE`: the event file. The outcome is written to FILE.status.
    pub(crate) out: PathBuf,
    /// `shared=N`, instead of a file: the descriptor of memory that another process reads.
    pub(crate) shared: Option<i32>,
    /// `header=FILE`: JSON for the header of the event file.
    pub(crate) header: Option<PathBuf>,
    /// `from=marker|start`: recording begins at the first marker, or at once.
    pub(crate) from_start: bool,
    /// `first=N`: value of the marker at which recording begins; 1 by default.
    pub(crate) first: u32,
    /// `last=N`: value of the marker at which recording ends; 2 by default.
    pub(crate) last: u32,
    /// `limit=N`: recording ends after this many instructions.
    pub(crate) limit: u64,
    /// `count-only=on`: instructions are counted and nothing is written, to measure the cost of
    /// counting.
    pub(crate) count_only: bool,
    /// `control-flow=on`: accesses are not recorded.
    pub(crate) control_flow: bool,
}

impl Options {
    /// # Errors
    ///
    /// What is wrong with an option.
    pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Options, PluginError> {
        let mut options = Options {
            out: PathBuf::new(),
            shared: None,
            header: None,
            from_start: false,
            first: 1,
            last: 2,
            limit: u64::MAX,
            count_only: false,
            control_flow: false,
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| PluginError::NoValue(word.into()))?;
            let wrong = || PluginError::Value(word.into());
            match key {
                "out" => options.out = value.into(),
                "shared" => options.shared = Some(value.parse().map_err(|_| wrong())?),
                "header" => options.header = Some(value.into()),
                "from" if value == "start" || value == "marker" => options.from_start = value == "start",
                "first" => options.first = value.parse().map_err(|_| wrong())?,
                "last" => options.last = value.parse().map_err(|_| wrong())?,
                "limit" => options.limit = value.parse().map_err(|_| wrong())?,
                "count-only" => options.count_only = switch(value).ok_or_else(wrong)?,
                "control-flow" => options.control_flow = switch(value).ok_or_else(wrong)?,
                "from" => return Err(wrong()),
                _ => return Err(PluginError::UnknownOption(key.into())),
            }
        }
        if options.out.as_os_str().is_empty() && options.shared.is_none() {
            return Err(PluginError::NoOutput);
        }
        Ok(options)
    }
}

/// A switch in the spellings of qemu.
fn switch(value: &str) -> Option<bool> {
    match value {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood() {
        let words = ["out=a", "from=start", "limit=5", "control-flow=on", "last=4"];
        let options = Options::parse(words.into_iter()).unwrap();
        assert_eq!(options.out, PathBuf::from("a"));
        assert!(options.from_start);
        assert!(options.control_flow);
        assert!(!options.count_only);
        assert_eq!((options.first, options.last, options.limit), (1, 4, 5));
    }

    #[test]
    fn memory_takes_the_place_of_a_file() {
        let options = Options::parse(["shared=7", "from=start"].into_iter()).unwrap();
        assert_eq!((options.shared, options.from_start), (Some(7), true));
        assert_eq!(Options::parse(["shared=x"].into_iter()).unwrap_err().text(), "`shared=x`: the value is not understood");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let refusal = |words: &[&str]| Options::parse(words.iter().copied()).unwrap_err().text();
        assert_eq!(refusal(&[]), "out=FILE is missing");
        assert_eq!(refusal(&["out=a", "limit=x"]), "`limit=x`: the value is not understood");
        assert_eq!(refusal(&["out=a", "from=end"]), "`from=end`: the value is not understood");
        assert_eq!(refusal(&["out=a", "more=1"]), "`more`: no such option");
        assert_eq!(refusal(&["out"]), "`out`: key=value is expected");
    }
}
