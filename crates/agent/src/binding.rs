//! Attributes accounts to jobs, units or containers, by what the kernel knows about an account:
//! environment, control group and user.

use std::{collections::HashMap, path::PathBuf};

use nix::unistd::{Uid, User};
use ring::hmac;
use sysdock_bpf::accounting::{Account, Accounting};
use sysdock_mounts::groups;

use crate::{
    settings::{Hidden, Settings},
    tokens::hex,
};

/// Id for processes that belong to no job.
pub(crate) const NO_JOB: &str = "(no job)";

/// The job that a row is attributed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Job {
    /// Number of the job, name of a unit, id of a container, or [`NO_JOB`].
    pub(crate) id: String,
    /// Name of its user.
    pub(crate) user: String,
    /// Name of the job.
    pub(crate) name: Option<String>,
}

/// Finds the jobs of accounts, and caches the names of users and groups.
pub(crate) struct Binder {
    settings: Settings,
    /// Mount point of control groups; `None`: not mounted.
    root: Option<PathBuf>,
    groups: HashMap<u64, Vec<u8>>,
    users: HashMap<u32, String>,
}

impl Binder {
    pub(crate) fn new(settings: &Settings) -> Binder {
        Binder { settings: settings.clone(), root: groups::mount_point(), groups: HashMap::new(), users: HashMap::new() }
    }

    /// The job to which an account belongs.
    pub(crate) fn job(&mut self, account: &Account, accounting: &Accounting) -> Job {
        let group = self.group(account.cgroup, accounting);
        let of_group = job_in_group(&group, &self.settings.groups);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // Environment variables can be set by whoever runs a program; a control group is made by
        // the batch system, so it takes precedence.
        let of_environment = || Some(text(&account.job)).filter(|job| !job.is_empty());
        let id = of_group.or_else(of_environment).or_else(|| unit_of_group(&group)).unwrap_or_else(|| NO_JOB.into());
        let name = (!account.name.is_empty()).then(|| text(&account.name));
        let user = self.user(account.uid);
        Job {
            user: self.settings.hidden(Hidden::Users, user),
            name: name.map(|name| self.settings.hidden(Hidden::Jobs, name)),
            id,
        }
    }

    fn group(&mut self, id: u64, accounting: &Accounting) -> Vec<u8> {
        if let Some(known) = self.groups.get(&id) {
            return known.clone();
        }
        let made = accounting.group(id);
        let path = made.or_else(|| {
            groups::add_names(self.root.as_deref()?, &mut self.groups);
            self.groups.get(&id).cloned()
        });
        let path = path.unwrap_or_default();
        self.groups.insert(id, path.clone());
        path
    }

    fn user(&mut self, uid: u32) -> String {
        self.users.entry(uid).or_insert_with(|| user_name(uid).unwrap_or_else(|| uid.to_string())).clone()
    }
}

impl Settings {
    /// A name as it may leave the node. With hiding, the same name has the same hash everywhere at
    /// this site, and cannot be recovered from it.
    pub(crate) fn hidden(&self, what: Hidden, name: String) -> String {
        if !self.hide.contains(&what) || name.is_empty() {
            return name;
        }
        // Without the secret, names cannot be guessed and compared with the hashes.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        hex(hmac::sign(&key, name.as_bytes()).as_ref()).chars().take(16).collect()
    }
}

/// The id of the job that a component of the group's path names.
fn job_in_group(path: &[u8], groups: &[(String, String)]) -> Option<String> {
    let path = String::from_utf8_lossy(path);
    path.split('/').find_map(|segment| {
        let job = groups.iter().find_map(|(before, after)| segment.strip_prefix(before)?.strip_suffix(after));
        job.filter(|job| !job.is_empty()).map(str::to_string)
    })
}

/// The container or unit that the innermost matching component names.
fn unit_of_group(path: &[u8]) -> Option<String> {
    let path = String::from_utf8_lossy(path);
    path.rsplit('/').find_map(|segment| {
        let scope = segment.strip_suffix(".scope");
        let container = scope.and_then(|name| name.rsplit_once('-')).map_or(segment, |(_, id)| id);
        if container.len() == 64 && container.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(container.chars().take(12).collect());
        }
        (scope.is_some() || segment.ends_with(".service")).then(|| segment.to_string())
    })
}

fn user_name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingsFile;

    fn settings(text: &str) -> Settings {
        Settings::new(&toml::from_str::<SettingsFile>(text).expect("TOML"), "n").expect("settings")
    }

    #[test]
    fn groups_name_jobs_units_and_containers() {
        let usual = settings("").groups;
        let job = |path: &str| job_in_group(path.as_bytes(), &usual);
        assert_eq!(job("/slurm/uid_1000/job_4242/step_0/task_0").as_deref(), Some("4242"));
        assert_eq!(job("/system.slice/slurmstepd.scope/job_7/step_batch").as_deref(), Some("7"));
        assert_eq!(job("/system.slice/nginx.service"), None);
        assert_eq!(job("/job_"), None);
        let own = settings("[[groups]]\nsegment = 'pbs-{job}.jobs'").groups;
        assert_eq!(job_in_group(b"/pbs-17.srv.jobs/x", &own).as_deref(), Some("17.srv"));
        let unit = |path: &str| unit_of_group(path.as_bytes());
        assert_eq!(unit("/system.slice/nginx.service").as_deref(), Some("nginx.service"));
        assert_eq!(unit("/user.slice/user-0.slice/session-3.scope").as_deref(), Some("session-3.scope"));
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(unit(&format!("/system.slice/docker-{id}.scope")).as_deref(), Some("0123456789ab"));
        assert_eq!(unit(&format!("/kubepods/burstable/podx/{id}")).as_deref(), Some("0123456789ab"));
        assert_eq!(unit(""), None);
    }

    #[test]
    fn hidden_names_are_the_same_everywhere_and_no_others() {
        let hiding = settings("hide = ['users']\nsecret = 'a'");
        let hidden = hiding.hidden(Hidden::Users, "alice".into());
        // As before: HMAC-SHA256 of the name, with the secret as key.
        assert_eq!(hidden, "dc8aae91fea98477");
        assert_eq!(hidden, hiding.hidden(Hidden::Users, "alice".into()));
        assert_ne!(hidden, settings("hide = ['users']\nsecret = 'b'").hidden(Hidden::Users, "alice".into()));
        assert_eq!(hiding.hidden(Hidden::Jobs, "alice".into()), "alice");
    }

    #[test]
    fn users_have_names() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(user_name(3_999_999_999), None);
    }
}
