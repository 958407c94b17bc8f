//! Settings of an agent: a file in TOML (`/etc/sysdock/agent.toml`). Command-line arguments take
//! precedence. Without a file, the usual batch systems are recognized.

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use serde::Deserialize;
use sysdock_bpf::accounting::{Variable, VariableKind};
use sysdock_table::codes;

use crate::{
    batch::{Named, Refusal},
    names,
};

/// The file of settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsFile {
    pub cluster: Option<String>,
    /// Name of the node, if it is not the host name.
    pub node: Option<String>,
    /// Names that must not leave the node in clear text.
    #[serde(default)]
    pub hide: Vec<Hidden>,
    /// A secret of this site, with which hidden names are hashed.
    pub secret: Option<String>,
    /// Environment variables that name jobs, in addition to the usual ones.
    #[serde(default)]
    pub variables: Vec<SiteVariable>,
    /// Names of control groups that name jobs, in addition to the usual ones.
    #[serde(default)]
    pub groups: Vec<SiteGroup>,
}

/// A kind of names that is hashed before it leaves the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hidden {
    /// Names of users.
    Users,
    /// Names of jobs and of their programs; not the numbers of jobs.
    Jobs,
    /// Paths of files; not mount points.
    Paths,
}

/// Environment variables of a batch system that this site uses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteVariable {
    /// The variable that contains the number of the job.
    pub id: String,
    /// The variable that contains the name of the job.
    pub name: Option<String>,
    /// A variable without which the others mean nothing.
    pub marker: Option<String>,
}

/// Control groups of a batch system that this site uses, for example `job_{job}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGroup {
    /// One component of the group's path, with `{job}` for the number of the job.
    pub segment: String,
}

/// Why settings cannot be used.
#[derive(Debug)]
pub enum SettingsError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file is not valid.
    Toml(toml::de::Error),
    /// A group has no `{job}`.
    NoPlace(String),
    /// Names are to be hidden, but there is no secret.
    NoSecret,
    /// No batch with this name is taken.
    Name(Refusal),
}

codes!(SettingsError { Io: "io", Toml: "toml", NoPlace: "no-place", NoSecret: "no-secret", Name: "name" });

/// How the agent works.
#[derive(Clone, Debug)]
pub struct Settings {
    pub cluster: String,
    pub node: String,
    /// Length of an interval.
    pub interval: Duration,
    /// How long a job may have no process until it counts as ended.
    pub linger: Duration,
    /// Number of files that are kept for each job.
    pub files_of_job: usize,
    /// Kinds of names that are hashed.
    pub hide: Vec<Hidden>,
    /// The key for these hashes.
    pub secret: Vec<u8>,
    /// Environment variables, by precedence.
    pub variables: Vec<Variable>,
    /// What precedes and follows the number of the job in the name of a control group.
    pub groups: Vec<(String, String)>,
}

/// Variables of batch systems: number of the job, its name, and a variable that must be set as
/// well.
const SCHEDULERS: [(&str, &str, Option<&str>); 6] = [
    ("SLURM_JOB_ID", "SLURM_JOB_NAME", None),
    ("PBS_JOBID", "PBS_JOBNAME", None),
    ("LSB_JOBID", "LSB_JOBNAME", None),
    ("FLUX_JOB_ID", "FLUX_JOB_NAME", None),
    ("OAR_JOB_ID", "OAR_JOB_NAME", None),
    ("JOB_ID", "JOB_NAME", Some("SGE_ROOT")),
];

/// Names of control groups of batch systems, as in [`Settings::groups`].
const GROUPS: [(&str, &str); 1] = [("job_", "")];

impl SettingsFile {
    /// Read a file.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(path: &Path) -> Result<SettingsFile, SettingsError> {
        let text = fs::read_to_string(path).map_err(SettingsError::Io)?;
        toml::from_str(&text).map_err(SettingsError::Toml)
    }
}

impl Settings {
    /// From a file; names that it does not contain come from the machine.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn new(file: &SettingsFile, host: &str) -> Result<Settings, SettingsError> {
        let place = |group: &SiteGroup| {
            let (before, after) = group.segment.split_once("{job}").ok_or(SettingsError::NoPlace(group.segment.clone()))?;
            Ok((before.to_string(), after.to_string()))
        };
        let mut groups = file.groups.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        groups.extend(GROUPS.map(|(before, after)| (before.to_string(), after.to_string())));
        if !file.hide.is_empty() && file.secret.as_deref().unwrap_or_default().is_empty() {
            return Err(SettingsError::NoSecret);
        }
        Ok(Settings {
            cluster: file.cluster.clone().unwrap_or_else(|| "cluster".into()),
            node: file.node.clone().unwrap_or_else(|| host.to_string()),
            interval: Duration::from_secs(10),
            linger: Duration::from_secs(10),
            files_of_job: 32,
            hide: file.hide.clone(),
            secret: file.secret.clone().unwrap_or_default().into_bytes(),
            variables: variables(&file.variables),
            groups,
        })
    }
}

impl Settings {
    /// Whether batches with these names are taken.
    ///
    /// # Errors
    /// [`SettingsError::Name`].
    pub fn check_names(&self) -> Result<(), SettingsError> {
        let refused = |of| Err(SettingsError::Name(Refusal::Name { of }));
        match () {
            () if !names::is_cluster(&self.cluster) => refused(Named::Cluster),
            () if !names::is_name(&self.node) => refused(Named::Node),
            () => Ok(()),
        }
    }
}

fn variables(of_site: &[SiteVariable]) -> Vec<Variable> {
    let of_site = of_site.iter().map(|one| (one.id.as_str(), one.name.as_deref(), one.marker.as_deref()));
    let usual = SCHEDULERS.iter().map(|(id, name, marker)| (*id, Some(*name), *marker));
    let mut found: BTreeMap<String, Variable> = BTreeMap::new();
    let mut order = Vec::new();
    for (scheduler, (id, name, marker)) in of_site.chain(usual).enumerate() {
        let kinds = [(Some(id), VariableKind::Id), (name, VariableKind::Name), (marker, VariableKind::Marker)];
        for (name, kind) in kinds.into_iter().filter_map(|(name, kind)| Some((name?, kind))) {
            let needs_marker = marker.is_some() && kind == VariableKind::Id;
            let variable = Variable { name: name.into(), kind, scheduler: scheduler as u8, needs_marker };
            if found.insert(name.into(), variable.clone()).is_none() {
                order.push(variable);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Settings, SettingsError> {
        let file: SettingsFile = toml::from_str(text).map_err(SettingsError::Toml)?;
        Settings::new(&file, "host1")
    }

    #[test]
    fn what_a_file_does_not_say_is_usual() {
        let settings = parsed("").expect("empty is fine");
        assert_eq!((settings.cluster.as_str(), settings.node.as_str()), ("cluster", "host1"));
        assert_eq!(settings.variables[0].name, "SLURM_JOB_ID");
        assert!(settings.variables.len() <= 16);
        assert_eq!(settings.groups, [("job_".to_string(), String::new())]);
    }

    #[test]
    fn a_site_adds_its_own_in_front() {
        let settings = parsed(
            "cluster = 'fugaku'\n[[variables]]\nid = 'PJM_JOBID'\nname = 'PJM_JOBNAME'\n[[groups]]\nsegment = 'pjm-{job}.x'",
        )
        .expect("it is fine");
        assert_eq!(
            settings.variables[0],
            Variable { name: "PJM_JOBID".into(), kind: VariableKind::Id, scheduler: 0, needs_marker: false }
        );
        assert_eq!(settings.groups[0], ("pjm-".to_string(), ".x".to_string()));
    }

    #[test]
    fn mistakes_are_errors() {
        assert!(matches!(parsed("claster = 'x'"), Err(SettingsError::Toml(_))));
        assert!(matches!(parsed("[[groups]]\nsegment = 'job'"), Err(SettingsError::NoPlace(_))));
        assert!(matches!(parsed("hide = ['users']"), Err(SettingsError::NoSecret)));
        let names = |cluster: &str| parsed(&format!("cluster = '{cluster}'")).expect("it is fine").check_names();
        assert!(names(&"x".repeat(247)).is_ok());
        for cluster in [&"x".repeat(248), "../up", ""] {
            assert!(matches!(names(cluster), Err(SettingsError::Name(Refusal::Name { of: Named::Cluster }))), "{cluster}");
        }
    }
}
