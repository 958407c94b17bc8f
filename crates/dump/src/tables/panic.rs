//! Rows of where and why the kernel stopped.

use std::ops::Range;

use sysdock_table::{TableError, readable, rows};

use super::Outcome;
use crate::{Kernel, Log, Panic, SavedRegisters, Sink, cause, panic::stop_of};

/// Write `dump_panic` and `dump_registers`.
pub(super) fn write(kernel: &Kernel, log: Option<&Log>, outcome: &Outcome, out: &mut impl Sink) -> Result<(), TableError> {
    let panic = kernel.panic(log);
    out.write_rows([panic_row(kernel, &panic, log, outcome)])?;
    let code = kernel.symbol("_stext").and_then(|start| Ok(start..kernel.symbol("_etext")?)).unwrap_or(0..0);
    out.write_rows(panic.registers.iter().flat_map(|saved| register_rows(kernel, saved, code.clone())))
}

fn panic_row<'p>(kernel: &'p Kernel, panic: &'p Panic, log: Option<&'p Log>, outcome: &Outcome) -> rows::DumpPanic<'p> {
    let stop = log.and_then(stop_of);
    let uptime = outcome.clock.map(|clock| stop.map_or(clock.last_tick_ns, |record| clock.boot_of_log(record.after_boot_ns)));
    let (cause, record) = log.and_then(cause).unzip();
    let record = record.flatten();
    let (letters, words) = panic.taints().unzip();
    let text = |text: &'p Option<String>| text.as_deref().map(|text| readable(text.as_bytes()));
    rows::DumpPanic {
        ts_ns: outcome.clock.zip(uptime).map(|(clock, uptime)| clock.epoch_of_boot(uptime)),
        uptime_ns: uptime,
        cause: cause.map(|cause| cause.name().into()),
        sequence: record.map(|record| record.sequence.cast_signed()),
        record: record.map(|record| readable(record.text.as_bytes())),
        cpu: panic.cpu.map(u32::cast_signed),
        pid: panic.pid.map(u32::cast_signed),
        comm: text(&panic.comm),
        function: panic.address.and_then(|address| kernel.function(address)).map(|(name, ..)| name.into()),
        address: panic.address.map(u64::cast_signed),
        taint: panic.taint.map(u64::cast_signed),
        taint_letters: letters.map(Into::into),
        taint_words: words.map(Into::into),
        host: text(&panic.host),
        version: text(&panic.version),
        status: panic.fault.map_or("ok", crate::Fault::name).into(),
    }
}

fn register_rows<'r>(
    kernel: &'r Kernel,
    saved: &'r SavedRegisters,
    code: Range<u64>,
) -> impl Iterator<Item = rows::DumpRegisters<'r>> {
    saved.values.iter().map(move |(name, value)| {
        let of_module = kernel.code_at(*value).is_some();
        let function = kernel.function(*value).filter(|_| of_module || code.contains(value));
        rows::DumpRegisters {
            cpu: saved.cpu.map(u32::cast_signed),
            pid: saved.pid.map(u32::cast_signed),
            origin: saved.moment.name().into(),
            name: (*name).into(),
            value: format!("{value:016x}").into(),
            function: function.map(|(name, ..)| name.into()),
            offset: function.map(|(_, offset, _)| offset.cast_signed()),
        }
    })
}
