//! Measures how fast a spool becomes a recording, and how small: `convert FOLDER [MILLION CALLS]`,
//! or `convert FOLDER SPOOL` for an existing spool.
#![expect(clippy::print_stdout, reason = "an example")]

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use sysdock_bpf::{SPOOL, Spool, clock_note, convert};
use sysdock_table::{Access, Cancel, Folder, Recording};

const FILES: u64 = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("convert FOLDER [MILLION CALLS | SPOOL]")?);
    let what = arguments.get(1).map_or("10", String::as_str);
    fs::create_dir_all(&folder)?;
    let own = folder.join(SPOOL);
    let spool = match what.parse::<f64>() {
        Ok(millions) => {
            write(&folder, (millions * 1e6) as u64)?;
            own.clone()
        }
        Err(_) => PathBuf::from(what),
    };
    let started = Instant::now();
    let mut recording = Recording::create(&folder.join("rec"), sysdock_bpf::manifest())?;
    let mut events = 0;
    let ending = convert(&spool, &mut recording, &Cancel::default(), &mut |progress| events = progress.lines)?;
    let manifest = recording.finish(ending)?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes: u64 = manifest.tables.values().flat_map(|table| &table.parts).map(|part| part.bytes).sum();
    let calls = manifest.tables["calls"].rows;
    println!("{calls} calls, {events} events, {seconds:.2} s, {:.2} M calls/s", calls as f64 / seconds / 1e6);
    println!(
        "{:.2} B/call in the recording, {:.1} in the spool",
        bytes as f64 / calls as f64,
        fs::metadata(&spool)?.len() as f64 / calls as f64
    );
    let status = fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().filter(|line| line.starts_with("VmHWM")).collect::<String>());
    if own.exists() {
        fs::remove_file(own)?;
    }
    fs::remove_dir_all(folder.join("rec"))?;
    Ok(())
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Plausible work of two CPUs with eight threads each: consecutive reads and writes, opens and
/// closes, calls that query files, other calls.
fn write(folder: &Path, calls: u64) -> Result<(), Box<dyn Error>> {
    let mut spool = Spool::create(&Folder::open(folder, Access::default())?)?;
    spool.note(&clock_note())?;
    let mut random = Random(1);
    let (mut now, mut offsets, mut reported) = ([1000u64; 2], [0i64; 16], vec![false; FILES as usize]);
    let mut span = Vec::new();
    for number in 0..calls / 64 {
        let cpu = (number % 2) as usize;
        span.clear();
        for _ in 0..64 {
            let thread = random.below(8) * 2 + cpu as u64;
            let duration = 200 + random.below(3000);
            now[cpu] += duration + random.below(500);
            let file = (random.below(FILES) * random.below(FILES)) / FILES;
            let (time, tid) = (now[cpu], thread as u32 + 1000);
            match random.below(100) {
                kind @ 0..60 => {
                    let place = &mut offsets[thread as usize];
                    *place += 4096;
                    let number = u64::from(kind >= 40);
                    report(&mut span, &mut reported, thread);
                    call(&mut span, (time, duration, number), tid, 5, 4096, thread + 1, *place, 4096, None);
                }
                60..70 => {
                    report(&mut span, &mut reported, file);
                    call(&mut span, (time, duration, 257), tid, 6, 6, file + 1, -1, 0o2_000_000, Some(&name(file)));
                    call(&mut span, (time + 300, 200, 3), tid, 6, 0, file + 1, -1, 0, None);
                }
                70..80 => call(&mut span, (time, duration, 262), tid, -1, -2, 0, -1, 0, Some(&name(file))),
                _ => call(&mut span, (time, duration, 202), tid, -1, 0, 0, -1, 0, None),
            }
        }
        spool.append(cpu as u32, &span)?;
    }
    Ok(spool.flush()?)
}

fn name(file: u64) -> String {
    format!("/home/somebody/project/src/module{}/file{file}.rs", file % 50)
}

fn report(out: &mut Vec<u8>, reported: &mut [bool], file: u64) {
    if std::mem::replace(&mut reported[file as usize], true) {
        return;
    }
    let name = name(file);
    let mut names = Vec::new();
    for part in name.split('/').rev().filter(|part| !part.is_empty()) {
        names.push(part.len() as u8);
        names.extend(part.as_bytes());
    }
    let start = out.len();
    out.extend([0; 8]);
    [file + 1, file].iter().for_each(|value| out.extend(value.to_le_bytes()));
    out.extend(0u32.to_le_bytes());
    [0o100_644u16, 0].iter().for_each(|value| out.extend(value.to_le_bytes()));
    out.extend(0xef53u32.to_le_bytes());
    [names.len() as u16, 5].iter().for_each(|value| out.extend(value.to_le_bytes()));
    out.extend(0u64.to_le_bytes());
    out.extend(names);
    end(out, start, 2, 0);
}

#[expect(clippy::too_many_arguments, reason = "the fields of an event")]
fn call(
    out: &mut Vec<u8>,
    (time, duration, number): (u64, u64, u64),
    tid: u32,
    fd: i32,
    result: i64,
    file: u64,
    offset: i64,
    extra: u64,
    path: Option<&str>,
) {
    let start = out.len();
    out.extend([0; 8]);
    out.extend((time - duration).to_le_bytes());
    out.extend((duration << 16 | number).to_le_bytes());
    out.extend(tid.to_le_bytes());
    out.extend(fd.to_le_bytes());
    out.extend(result.to_le_bytes());
    out.extend(file.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend(extra.to_le_bytes());
    if let Some(path) = path {
        out.extend(0u64.to_le_bytes());
        out.extend((path.len() as u16).to_le_bytes());
        out.extend([0; 6]);
        out.extend(path.as_bytes());
    }
    end(out, start, 1, if path.is_some() { 2 } else { 0 });
}

fn end(out: &mut Vec<u8>, start: usize, kind: u8, flags: u8) {
    out.resize(out.len().next_multiple_of(8), 0);
    let length = (out.len() - start) as u16;
    out[start + 4..start + 6].copy_from_slice(&length.to_le_bytes());
    out[start + 6] = kind;
    out[start + 7] = flags;
}
