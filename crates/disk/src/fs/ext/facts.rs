//! How a file system was made and is used, for `environment`.

use super::{
    bytes::{le16, le32, le64, text},
    super_block::SuperBlock,
};

/// Names and values. The names are those of dumpe2fs, if it has some.
pub(super) fn of(super_block: &SuperBlock, mount_options: Option<&str>) -> Vec<(String, String)> {
    let bytes = &super_block.bytes;
    let time = |at: usize| u64::from(le32(bytes, at));
    let mut facts = vec![
        ("features", super_block.features()),
        ("state", state(le16(bytes, 0x3a))),
        ("block size", format!("{} B", super_block.block_bytes)),
        ("cluster size", format!("{} B", super_block.block_bytes * super_block.cluster_blocks)),
        ("blocks per group", super_block.blocks_per_group.to_string()),
        ("inodes per group", super_block.inodes_per_group.to_string()),
        ("inode count", super_block.inodes.to_string()),
        ("inode size", format!("{} B", super_block.inode_bytes)),
        ("reserved block count", le32(bytes, 0x8).to_string()),
        ("flex block group size", (1_u64 << bytes[0x174].min(31)).to_string()),
        ("RAID stride", format!("{} blocks", le16(bytes, 0x164))),
        ("RAID stripe width", format!("{} blocks", le32(bytes, 0x170))),
        ("mount count", le16(bytes, 0x34).to_string()),
        ("error count", le32(bytes, 0x194).to_string()),
        ("lifetime writes", format!("{} KiB", le64(bytes, 0x178))),
    ];
    let times = [("created", 0x108), ("last mounted at", 0x2c), ("last written at", 0x30), ("last checked at", 0x40)];
    facts.extend(times.map(|(name, at)| (name, format!("{} s since the Unix epoch", time(at)))));
    let optional = [
        ("last mounted on", text(bytes, 0x88, 64)),
        ("default mount options", text(bytes, 0x200, 64)),
        ("mount options", mount_options.map(String::from)),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

fn state(bits: u16) -> String {
    let words = [(1, "clean", "not clean"), (2, "with errors", ""), (4, "with orphans", "")];
    let words = words.map(|(bit, set, unset)| if bits & bit != 0 { set } else { unset });
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}
