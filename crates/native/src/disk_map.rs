//! `sysdock-native disk map`: draws a picture of the location of files, and prints what it shows as
//! JSON.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};
use sysdock_disk::map::{self, Class, Curve, Device, Pattern, Recorded, Settings, Window};

use crate::{
    arguments::{self, MapCurve},
    messages::Message,
};

/// Draw; returns the exit status.
pub(crate) fn run(arguments: &arguments::Map) -> Result<u8, Message> {
    map::expect_panics_of_libraries();
    let mut recorded = map::read(&arguments.recording, arguments.find.as_deref())?;
    recorded.space.extend_to(arguments.least_size);
    let curve = if arguments.curve == MapCurve::Rows { Curve::Rows } else { Curve::Hilbert };
    let window = Window { from: arguments.from, length: arguments.length.unwrap_or(u64::MAX) };
    let window = recorded.space.clipped(window);
    if window.length == 0 {
        let hint = format!("it has {} bytes: give --from and --length inside it", recorded.space.size());
        return Err(Message::new("the window contains no part of the device", hint));
    }
    let settings =
        Settings { side: arguments.size, curve, is_worst: arguments.worst, window, is_search: arguments.find.is_some() };
    let picture = map::draw(&recorded.space, &settings);
    if let Some(path) = &arguments.output {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let mut sink = BufWriter::new(file);
        picture.write_png(&mut sink).map_err(|error| failed(path, &error))?;
        sink.flush().map_err(|error| failed(path, &error))?;
    }
    let mut shown = described(&recorded, window, picture.order, curve);
    shown["lit_bytes"] = json!(picture.sum.lit);
    shown["shares"] = Class::ALL.iter().map(|class| class_shown(*class, picture.sum.bytes[*class as usize])).collect();
    if let Some(path) = &arguments.pieces {
        let packed = map::pack(&recorded.space, arguments.most);
        fs::write(path, &packed.bytes).map_err(|error| failed(path, &error))?;
        let (pieces, bytes, least) = packed.left_out;
        shown["packed"] = json!({
            "count": packed.count, "unit_bytes": packed.unit,
            "left_out": {"pieces": pieces, "bytes": bytes, "shorter_than_bytes": least},
            "inodes": packed.owners.iter().map(|owner| recorded.inodes[*owner as usize]).collect::<Vec<_>>(),
        });
    }
    writeln!(io::stdout(), "{shown}").map_err(|error| failed(Path::new("standard output"), &error))?;
    Ok(0)
}

fn described(recorded: &Recorded, window: Window, order: u32, curve: Curve) -> Value {
    let (facts, space) = (&recorded.facts, &recorded.space);
    let labels: Vec<Value> = map::labels(&recorded.groups, window, curve, order)
        .iter()
        .map(|label| json!({"device": label.device, "first": label.groups.0, "last": label.groups.1, "x": label.place.0, "y": label.place.1}))
        .collect();
    let device = |device: &Device| json!({"device": device.number, "path": device.path, "from": device.start});
    let devices: Vec<Value> = facts.devices.iter().map(device).collect();
    json!({
        "fs_type": facts.fs_type, "source": facts.source, "size_bytes": space.size(), "block_bytes": space.block(),
        "from": window.from, "length": window.length, "order": order, "devices": devices, "labels": labels,
        "claimed_again_bytes": space.claimed_again, "beyond_bytes": space.beyond,
        "wrong_rows": facts.wrong_rows, "nowhere": facts.nowhere,
    })
}

/// A class with its share and its colours, which are defined only in `sysdock_disk`.
fn class_shown(class: Class, bytes: u64) -> Value {
    let paint = class.paint();
    let hex = |colour: [u8; 3]| format!("#{:02X}{:02X}{:02X}", colour[0], colour[1], colour[2]);
    let pattern = match paint.pattern {
        Pattern::Plain => "plain",
        Pattern::Checks => "checks",
        Pattern::Diagonals => "diagonals",
        Pattern::Lines => "lines",
    };
    json!({"class": class.name(), "bytes": bytes, "colour": hex(paint.colour), "second": hex(paint.second), "pattern": pattern})
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Message {
    Message::bare(format!("{}: {error}", path.display()))
}
