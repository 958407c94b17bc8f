//! Inconsistencies: counted by kind, with one example each.

use std::collections::BTreeMap;

use sysdock_table::{Fact, facts::disk as facts};

/// The values of `import_issues.issue` that this reader uses, explained in
/// docs/reference/import-issues.md.
pub(super) mod word {
    pub(in super::super) use crate::small_tables::UNREADABLE_BLOCK;
    pub(in super::super) const BROKEN_SUPER_BLOCK: &str = "broken_super_block";
    pub(in super::super) const BROKEN_GROUP: &str = "broken_group";
    pub(in super::super) const BROKEN_INODE: &str = "broken_inode";
    pub(in super::super) const BROKEN_EXTENTS: &str = "broken_extents";
    pub(in super::super) const BROKEN_DIRECTORY: &str = "broken_directory";
    pub(in super::super) const CLAIMED_TWICE: &str = "claimed_twice";
    pub(in super::super) const FREE_BUT_USED: &str = "free_but_used";
    pub(in super::super) const NO_NAME: &str = "no_name";
    pub(in super::super) const NAME_WITHOUT_INODE: &str = "name_without_inode";
    pub(in super::super) const JOURNAL_DAMAGED: &str = "journal_damaged";
    pub(in super::super) const NOT_REPLAYED: &str = "not_replayed";
}

#[derive(Debug, Default)]
pub(super) struct Issues {
    counts: BTreeMap<&'static str, (u64, Fact)>,
}

impl Issues {
    pub(super) fn add(&mut self, issue: &'static str, count: u64, example: impl FnOnce() -> Fact) {
        if count > 0 {
            self.counts.entry(issue).or_insert_with(|| (0, example())).0 += count;
        }
    }

    pub(super) fn merge(&mut self, others: Issues) {
        for (issue, (count, example)) in others.counts {
            self.add(issue, count, || example);
        }
    }

    /// Kind of each issue, with its count and the first example.
    pub(super) fn details(&self) -> Vec<(&'static str, Fact)> {
        let detail =
            |count: u64, example: &Fact| if count == 1 { example.clone() } else { facts::several(count, example.clone()) };
        self.counts.iter().map(|(issue, (count, example))| (*issue, detail(*count, example))).collect()
    }
}
