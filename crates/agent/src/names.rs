//! Names that agents send: which may be in a batch, and what they are called in folders of the lake.

use std::fmt::Write;

/// Longest name of a file or folder [B].
const LONGEST_FILE: usize = 255;
/// Longest name that is in rows only [B].
const LONGEST: usize = 255;
/// What precedes the name of a cluster in the lake.
const CLUSTER: &str = "cluster=";

/// Whether this can be the name of a node.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len())
        && !name.starts_with('.')
        && !name.chars().any(|letter| letter.is_control() || letter == '/' || letter == '=')
}

/// Whether this can be the name of a cluster: a name whose folder can be made.
pub(crate) fn is_cluster(name: &str) -> bool {
    is_name(name) && cluster_folder(name).len() <= LONGEST_FILE
}

/// Whether this is the id of an agent.
pub(crate) fn is_agent(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The folder of a cluster, as programs that read partitions write it (Hive, Spark, DuckDB): what has
/// a meaning there is encoded.
pub(crate) fn cluster_folder(name: &str) -> String {
    let mut folder = String::from(CLUSTER);
    for letter in name.chars() {
        if letter.is_ascii_control() || "\"#%'*/:=?\\\x7f{[]^".contains(letter) {
            let _ = write!(folder, "%{:02X}", u32::from(letter));
        } else {
            folder.push(letter);
        }
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_bounded_by_its_folder() {
        let longest = |letter: &str| (1..300).rfind(|length| is_cluster(&letter.repeat(*length)));
        assert_eq!([longest("x"), longest("%"), longest("\u{30d5}")], [Some(247), Some(82), Some(82)]);
        assert!(is_name(&"x".repeat(255)) && !is_name(&"x".repeat(256)));
        assert!(["", ".x", "../up", "a=b", "a\nb", "a/b"].iter().all(|name| !is_name(name)));
    }

    #[test]
    fn what_has_a_meaning_in_folders_is_encoded() {
        assert_eq!(cluster_folder("a b-c.d_\u{30d5}"), "cluster=a b-c.d_\u{30d5}");
        assert_eq!(cluster_folder("50%:[x]"), "cluster=50%25%3A%5Bx%5D");
    }
}
