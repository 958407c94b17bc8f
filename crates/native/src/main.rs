//! `sysdock-native`: the part of sysdock that records and imports. It needs no Python and can be
//! copied alone to another machine.

use std::process::ExitCode;

use command::Exit;

mod agent;
mod arguments;
mod by_kernel;
mod by_strace;
mod command;
mod confine;
mod disk;
mod disk_map;
mod dump;
mod environment;
mod flight;
mod http_load;
mod import;
mod import_callgrind;
mod import_load;
mod inherited;
mod itrace;
mod itrace_user;
mod left_behind;
mod load;
mod measure;
mod messages;
mod options_as_json;
mod orphans;
mod privileges;
mod progress;
mod record;
mod relay;
mod sentences;
mod signals;
mod terminal;
mod top;
mod watched;

fn main() -> ExitCode {
    keep_freed_memory();
    signals::survive_file_size_limit();
    let verb = arguments::parse();
    let outcome = match verb {
        arguments::Verb::Import(arguments) => import::run(&arguments).map(Exit::Code),
        arguments::Verb::Record(arguments) => record::run(&arguments),
        arguments::Verb::Disk { verb: arguments::Disk::Scan(arguments) } => disk::scan(&arguments).map(Exit::Code),
        arguments::Verb::Disk { verb: arguments::Disk::Map(arguments) } => disk_map::run(&arguments).map(Exit::Code),
        arguments::Verb::Dump { verb: arguments::Dump::Info(arguments) } => dump::info(&arguments).map(Exit::Code),
        arguments::Verb::Dump { verb: arguments::Dump::Run(arguments) } => dump::run(&arguments).map(Exit::Code),
        arguments::Verb::Dump { verb: arguments::Dump::Serve(arguments) } => dump::serve(&arguments).map(Exit::Code),
        arguments::Verb::Itrace { verb: arguments::Itrace::Attach(arguments) } => itrace::attach(&arguments),
        arguments::Verb::Itrace { verb: arguments::Itrace::User(arguments) } => itrace_user::run(&arguments),
        arguments::Verb::Itrace { verb: arguments::Itrace::Convert(arguments) } => itrace::convert(&arguments).map(Exit::Code),
        arguments::Verb::Itrace { verb: arguments::Itrace::Dump(arguments) } => itrace::dump(&arguments).map(Exit::Code),
        arguments::Verb::Itrace { verb: arguments::Itrace::Decode(arguments) } => itrace::decode(&arguments).map(Exit::Code),
        arguments::Verb::Load(arguments) => load::run(&arguments).map(Exit::Code),
        arguments::Verb::HttpLoad(arguments) => http_load::run(&arguments).map(Exit::Code),
        arguments::Verb::Measure(arguments) => measure::run(&arguments).map(Exit::Code),
        arguments::Verb::Top(arguments) => top::run(&arguments),
        arguments::Verb::Flight { verb } => flight::run(&verb).map(Exit::Code),
        arguments::Verb::Agent { verb } => agent::run(&verb).map(Exit::Code),
        arguments::Verb::Collect(arguments) => agent::collect(&arguments).map(Exit::Code),
        arguments::Verb::Options => options_as_json::print().map(Exit::Code),
        arguments::Verb::Salvage(arguments) => by_kernel::salvage(&arguments).map(Exit::Code),
    };
    match outcome {
        Ok(Exit::Code(code)) => ExitCode::from(code),
        Ok(Exit::Signal(signal)) => {
            signals::die_by(signal);
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
        Err(message) => {
            messages::print(&message);
            ExitCode::from(messages::EXIT_ERROR)
        }
    }
}

/// Keep freed memory for the next row group instead of returning it to the kernel, which would
/// clear every page again for each group.
fn keep_freed_memory() {
    // SAFETY: mallopt only sets parameters of the allocator; no other thread runs yet.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 28);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 28);
    }
}
