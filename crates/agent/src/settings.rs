//! Settings of an agent: a file in TOML (`/etc/sysdock/agent.toml`); command-line arguments take precedence. Without a file, the usual batch systems
//! are recognized.

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use serde::Deserialize;
use sysdock_bpf::accounting::{Variable, VariableKind};

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsFile {
    /// Name of the cluster.
    pub cluster: Option<String>,
    /// Name of the node, where it is not the host's.
    pub node: Option<String>,
    /// What is not to leave the node as it is: names of users, jobs, paths.
    #[serde(default)]
    pub hide: Vec<Hidden>,
    /// A text that only this site knows: hidden names are hashed with it.
    pub secret: Option<String>,
    /// Variables of the environment that name jobs, in addition to the usual ones.
    #[serde(default)]
    pub variables: Vec<SiteVariable>,
    /// Names of control groups that name jobs, in addition to the usual ones.
    #[serde(default)]
    pub groups: Vec<SiteGroup>,
}

/// What is hashed before it leaves the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hidden {
    /// Names of users.
    Users,
    /// Names of jobs and of their programs; not their numbers.
    Jobs,
    /// Paths of files; not of mount points.
    Paths,
}

/// A variable of this site.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteVariable {
    /// The variable that holds the number of the job.
    pub id: String,
    /// The one that holds what it is called.
    pub name: Option<String>,
    /// One without which the others mean nothing.
    pub marker: Option<String>,
}

/// A control group of this site: `job_{job}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGroup {
    /// One name in the path of the group, with `{job}` where the number of the job is.
    pub segment: String,
}

/// Why settings cannot be used.
#[derive(Debug)]
pub enum SettingsError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is not what it should be: line and reason.
    Toml(String),
    /// A group does not say where the number of the job is.
    NoPlace(String),
    /// Names are to be hidden, and there is no secret.
    NoSecret,
}

/// How the agent works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the node.
    pub node: String,
    /// Length of an interval.
    pub interval: Duration,
    /// How long a job may have no process before it has ended.
    pub linger: Duration,
    /// Files that are kept of each job.
    pub files_of_job: usize,
    /// What is hashed, with this.
    pub hide: Vec<Hidden>,
    /// With what.
    pub secret: Vec<u8>,
    /// Variables, in the order in which they are believed.
    pub variables: Vec<Variable>,
    /// Names of groups: what stands before and after the number of the job.
    pub groups: Vec<(String, String)>,
}

/// Variables of batch systems: the number of the job, its name, and what must be there as well.
const SCHEDULERS: [(&str, &str, Option<&str>); 6] = [
    ("SLURM_JOB_ID", "SLURM_JOB_NAME", None),
    ("PBS_JOBID", "PBS_JOBNAME", None),
    ("LSB_JOBID", "LSB_JOBNAME", None),
    ("FLUX_JOB_ID", "FLUX_JOB_NAME", None),
    ("OAR_JOB_ID", "OAR_JOB_NAME", None),
    ("JOB_ID", "JOB_NAME", Some("SGE_ROOT")),
];

/// Names in the paths of their groups.
const GROUPS: [(&str, &str); 1] = [("job_", "")];

impl SettingsFile {
    /// Read one.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(path: &Path) -> Result<SettingsFile, SettingsError> {
        let text = fs::read_to_string(path).map_err(SettingsError::Io)?;
        toml::from_str(&text).map_err(|error| SettingsError::Toml(error.to_string()))
    }
}

impl Settings {
    /// From a file; names that it does not say come from the machine.
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
        let file: SettingsFile = toml::from_str(text).map_err(|error| SettingsError::Toml(error.to_string()))?;
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
    }
}
