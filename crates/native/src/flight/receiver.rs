//! Makes a recording of the contents of a flight recorder. The recorder only sends a spool; the
//! rest is done here, so that it is not disturbed.

use std::io::{self, Read};

use serde_json::json;
use sysdock_bpf::{BpfError, KernelNames, SPOOL};
use sysdock_table::{Cancel, Ending, Folder, Recording};

use crate::{
    arguments::FlightDump,
    confine, environment,
    flight::control,
    messages::{EXIT_INTERRUPTED, Message},
    privileges,
    progress::Reporter,
    signals,
};

/// Request the recorder's contents, and make a recording of them.
pub(crate) fn dump(arguments: &FlightDump) -> Result<u8, Message> {
    // Before the request: an existing folder is an error.
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    match control::send_request(&arguments.name.name, &json!({ "do": "dump", "text": arguments.text })) {
        Ok((_, mut spool)) => make(arguments, folder, &mut spool),
        Err(message) => {
            folder.remove_made();
            Err(message)
        }
    }
}

/// Make a recording of a spool that arrives.
pub(crate) fn receive(arguments: &FlightDump, spool: &mut impl Read) -> Result<u8, Message> {
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    make(arguments, folder, spool)
}

fn make(arguments: &FlightDump, folder: Folder, spool: &mut impl Read) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let mut manifest = sysdock_bpf::manifest();
    manifest.host = environment::host_name();
    let names = KernelNames::open();
    let mut recording = Recording::create_in(folder, manifest)?;
    let mut rows = environment::of_this_machine(&[], None);
    keep(spool, recording.folder())?;
    privileges::become_caller()?;
    rows.push(environment::of_its_limits(confine::parser(recording.folder())));
    environment::write(&mut recording, &rows)?;
    // Listed from here on, so that salvage finds it.
    recording.checkpoint()?;
    let mut reporter = Reporter::new(&arguments.progress);
    let ending = sysdock_bpf::convert_own(&mut recording, names, &cancel, &mut |progress| reporter.report(progress))?;
    if ending == Ending::Interrupted {
        // The spool stays, for `salvage`.
        recording.finish(ending)?;
        return Ok(EXIT_INTERRUPTED);
    }
    sysdock_bpf::finish_converted(recording, ending)?;
    Ok(0)
}

/// Write the incoming data to the recording's spool.
fn keep(spool: &mut impl Read, folder: &Folder) -> Result<(), Message> {
    let path = folder.path().join(SPOOL);
    let failed = |error: io::Error| Message::from(BpfError::spool(&path, error));
    let mut file = folder.create_appended(SPOOL).map_err(failed)?;
    io::copy(spool, &mut file).map_err(failed)?;
    file.sync_all().map_err(failed)
}
