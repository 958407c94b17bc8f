//! Printed lists, and properties of paths.

use crate::text;

/// Items of a printed list: `[3</a, b>, 4]`, `["sh", "-c"]`. A cut mark (`...`) ends it.
pub(crate) fn list(text: &[u8]) -> Vec<&[u8]> {
    text.strip_prefix(b"[").map_or_else(Vec::new, items)
}

/// Fields of a printed structure: `{aio_data=0x1, aio_buf="a, b", ...}`.
pub(crate) fn structure(text: &[u8]) -> Vec<&[u8]> {
    text.strip_prefix(b"{").map_or_else(Vec::new, items)
}

/// The texts between top-level commas, up to the closing bracket. Strings and tags are not split.
fn items(body: &[u8]) -> Vec<&[u8]> {
    let mut items = Vec::new();
    let (mut at, mut start, mut depth) = (0, 0, 0usize);
    while at < body.len() {
        match body[at] {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' if depth > 0 => depth -= 1,
            b',' if depth > 0 => {}
            b'"' => {
                let Some(len) = text::string_end(&body[at..]) else { break };
                at += len;
                continue;
            }
            b'<' if at > 0 && (body[at - 1].is_ascii_digit() || body[at - 1] == b'D') => {
                let Some(len) = text::tag_end(&body[at..]) else { break };
                at += len;
                continue;
            }
            b',' | b']' | b'}' | b')' => {
                let item = body[start..at].trim_ascii();
                if !item.is_empty() && item != b"..." {
                    items.push(item);
                }
                if body[at] != b',' {
                    break;
                }
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    items
}

/// Limit of a command line [B]. It is written for each thread and process that runs the program.
const LONGEST_COMMAND: usize = 4096;

/// A command line, cut if it is very long.
pub(crate) fn cut_command(mut line: String) -> String {
    if line.len() > LONGEST_COMMAND {
        let end = (0..=LONGEST_COMMAND).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
        line.push_str("...");
    }
    line
}

/// The arguments of exec as one line; arguments that strace cut end in `...`.
pub(crate) fn command_line(argv: &[u8]) -> String {
    let mut line = String::new();
    for item in list(argv) {
        if line.len() > LONGEST_COMMAND {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        match text::string(item) {
            Some(word) => line.push_str(&String::from_utf8_lossy(&word)),
            None => line.push_str(&String::from_utf8_lossy(item)),
        }
        if item.ends_with(b"\"...") {
            line.push_str("...");
        }
    }
    cut_command(line)
}

/// Whether a path below /dev names a disk. Reads and writes of other devices have no offset.
pub(crate) fn is_block_device(path: &[u8]) -> bool {
    const DISKS: [&[u8]; 11] = [b"sd", b"hd", b"vd", b"xvd", b"nvme", b"dm-", b"md", b"loop", b"mapper/", b"ram", b"disk/"];
    path.strip_prefix(b"/dev/").is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_odd_items_whole() {
        assert_eq!(list(b"[3</a, b]>, 4]"), [&b"3</a, b]>"[..], b"4"]);
        assert_eq!(command_line(br#"["sh", "-c", "a, b]"..., ...]"#), "sh -c a, b]...");
        assert!(list(b"0x7ffe").is_empty());
    }
}
