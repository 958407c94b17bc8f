//! The agent's loop: at the end of each interval it reads the sums, turns them into a batch and
//! keeps that on disk; in between it answers questions.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, SystemTime},
};

use sysdock_bpf::accounting::{Account, Accounting, JobFile, Reading, Use, VariableKind};
use sysdock_table::{
    Cancel,
    rows::{AgentBatches, JobFiles, JobTotals},
};

use crate::{
    asking::{self, AgentStatus, DestinationStatus, JobAnswer, Query, Question, Reply},
    batch::{Batch, Refusal},
    binding::{Binder, Job},
    endpoint::{Endpoint, MetricsOptions, Page},
    error::AgentError,
    exposition::{Exposition, Health},
    node::{Mounts, Node},
    otlp::Done,
    outcome::{Outcome, Rejection},
    rows::Origin,
    sampling::{ReadingContext, Sampled, State},
    sending::{self, Progress, Sending, Target, Way},
    settings::Settings,
    spool::{Kept, Spool},
};

/// Number of ended jobs kept for queries.
const REMEMBERED: usize = 1024;

/// Where an agent works, and where its batches go.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the spool.
    pub spool: PathBuf,
    /// Limit for batches that wait in the spool [B].
    pub spool_bytes: u64,
    /// A BPF file system to which the programs are pinned, so that they outlive an agent that is
    /// killed; `None`: they end with the agent.
    pub pins: Option<PathBuf>,
    /// Destinations of batches: one, or two of different kinds.
    pub targets: Vec<Target>,
    /// Where the sums of all jobs together are served; `None`: nowhere.
    pub metrics: Option<MetricsOptions>,
}

/// Events that a running agent reports.
#[derive(Debug)]
pub enum Event {
    /// Counting has begun.
    Begun {
        /// Whether programs that an earlier agent pinned were resumed.
        is_resumed: bool,
        /// Variables of the environment that found no room in the programs.
        left_out: Vec<String>,
        /// Address at which metrics are served.
        metrics: Option<SocketAddr>,
    },
    /// Batches cannot be sent; they wait in the spool.
    Waits(AgentError),
    /// A batch was refused, and set aside.
    Refused(Refusal),
    /// A batch could not be kept, or the kernel could not be read: the next batch contains what
    /// this one would have.
    Missed(AgentError),
    /// Number of series of metrics that find no room from now on; what they count is added up under
    /// one name.
    Dropped(usize),
    /// A receiver of OTLP refused this many points, which are lost.
    Rejected(u64, Rejection),
    /// A batch could not be kept for the second destination, and is missing there.
    Unkept(AgentError),
    /// Metrics are no longer served.
    Unserved(AgentError),
}

/// The way to one destination. The first takes batches from the spool itself, the second from a
/// folder of its own in the spool.
struct Route {
    name: &'static str,
    spool: Spool,
    progress: Arc<Progress>,
}

/// The published sums, and the endpoint that serves them.
struct Published {
    exposition: Exposition,
    endpoint: Option<Endpoint>,
    page: Page,
    started_ns: i64,
}

/// A running agent.
pub struct Agent {
    settings: Settings,
    options: Options,
    spool: Spool,
    kept: Kept,
    accounting: Accounting,
    binder: Binder,
    node: Node,
    is_resumed: bool,
    left_out: Vec<String>,
    ended: VecDeque<(JobTotals<'static>, Vec<JobFiles<'static>>)>,
    cpu_ns: u64,
    last: Option<Duration>,
    /// Files that were taken from the kernel and are not in a state yet.
    files: Vec<JobFile>,
    published: Option<Published>,
    /// Number of intervals that could not be read or kept.
    missed: u64,
    /// One for each of [`Options::targets`], in that order.
    routes: Vec<Route>,
}

impl Agent {
    /// Load the programs, or resume pinned ones, and give each running process its job.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn begin(settings: Settings, options: Options) -> Result<Agent, AgentError> {
        let spool = Spool::open(&options.spool, options.spool_bytes)?;
        let published = options.metrics.as_ref().map(Published::open).transpose()?;
        let mut kept = spool.begin()?;
        let routes = routes(&options.targets, &spool, &mut kept)?;
        let (mut accounting, left_out) = Accounting::begin(&settings.variables, options.pins.as_deref())?;
        let binder = Binder::new(&settings);
        if !accounting.is_resumed() {
            seed(&mut accounting, &settings);
        }
        let is_resumed = accounting.is_resumed();
        Ok(Agent {
            node: Node::new(Path::new("/")),
            settings,
            options,
            spool,
            kept,
            accounting,
            binder,
            is_resumed,
            left_out,
            ended: VecDeque::new(),
            cpu_ns: 0,
            last: None,
            files: Vec::new(),
            published,
            missed: 0,
            routes,
        })
    }

    /// Count until cancelled.
    ///
    /// # Errors
    /// [`AgentError`]: it cannot begin. Later errors are reported and do not end it.
    pub fn run(mut self, cancel: &Cancel, on_event: &(dyn Fn(Event) + Sync)) -> Result<(), AgentError> {
        let (send, questions) = channel();
        asking::listen(&self.options.spool, &send)?;
        let endpoint = self.published.as_mut().and_then(|published| published.endpoint.take());
        let metrics = endpoint.as_ref().and_then(Endpoint::address);
        on_event(Event::Begun { is_resumed: self.is_resumed, left_out: self.left_out.clone(), metrics });
        let every = self.settings.interval;
        let over = Cancel::default();
        let mut ways = self.ways()?;
        std::thread::scope(|scope| {
            for (way, spool, progress) in &mut ways {
                scope.spawn(|| sending::run(way, spool, every, &over, progress, &|outcome| report(outcome, on_event)));
            }
            scope.spawn(|| {
                if let Some(Err(error)) = endpoint.map(|endpoint| endpoint.serve(&over)) {
                    on_event(Event::Unserved(error));
                }
            });
            self.sample(&BTreeSet::new(), on_event);
            self.count(cancel, &questions, on_event);
            self.sample(&BTreeSet::new(), on_event);
            over.request();
        });
        Ok(())
    }

    /// What the thread of each route needs. Its spool is the same folder, opened without the lock.
    fn ways(&self) -> Result<Vec<(Way, Spool, Arc<Progress>)>, AgentError> {
        let way = |(target, route): (&Target, &Route)| {
            let spool = route.spool.share()?;
            Ok((Way::open(target, &self.kept.agent, &spool)?, spool, Arc::clone(&route.progress)))
        };
        self.options.targets.iter().zip(&self.routes).map(way).collect()
    }

    fn count(&mut self, cancel: &Cancel, questions: &Receiver<Question>, on_event: &dyn Fn(Event)) {
        const STEP: Duration = Duration::from_millis(200);
        let mut next = next_end(self.settings.interval);
        while !cancel.requested() {
            let left = next.duration_since(SystemTime::now()).unwrap_or_default();
            // A clock that was set back must not stop the loop.
            let left = left.min(self.settings.interval);
            match questions.recv_timeout(left.min(STEP)) {
                Ok(question) => self.answer(question, on_event),
                Err(RecvTimeoutError::Timeout) if left <= STEP => {
                    self.sample(&BTreeSet::new(), on_event);
                    next = next_end(self.settings.interval);
                }
                Err(_) => {}
            }
        }
    }

    fn answer(&mut self, question: Question, on_event: &dyn Fn(Event)) {
        let reply = match &question.query {
            Query::Job { job, over } => Reply::Job(Box::new(self.answer_about(job, *over, on_event))),
            Query::Status => Reply::Status(self.status()),
        };
        (question.answer)(&reply);
    }

    fn answer_about(&mut self, job: &str, over: bool, on_event: &dyn Fn(Event)) -> JobAnswer {
        let over = if over { BTreeSet::from([job.to_string()]) } else { BTreeSet::new() };
        self.sample(&over, on_event);
        let ended = self.ended.iter().rev().find(|(total, _)| total.job_id.as_deref() == Some(job));
        let so_far = self.so_far(job);
        match ended {
            Some((total, files)) if so_far.totals.is_empty() => JobAnswer { total: Some(total.clone()), files: files.clone() },
            _ => JobAnswer { total: so_far.totals.into_iter().next(), files: so_far.files },
        }
    }

    fn status(&self) -> AgentStatus {
        AgentStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            cluster: self.settings.cluster.clone(),
            node: self.settings.node.clone(),
            agent: self.kept.agent.clone(),
            sequence: self.kept.sequence,
            last_interval_ns: self.kept.state.as_ref().map_or(0, |state| state.last_ns),
            missed_intervals: self.missed,
            destinations: self.destinations(),
        }
    }

    fn so_far(&self, job: &str) -> Sampled {
        let (Some(state), Ok(mounts)) = (&self.kept.state, Mounts::read()) else { return Sampled::default() };
        let over = BTreeSet::new();
        state.so_far(job, &self.reading_context(&self.origin(), &mounts, &over, 0))
    }

    fn origin(&self) -> Origin {
        Origin {
            cluster: self.settings.cluster.clone(),
            node: self.settings.node.clone(),
            agent: self.kept.agent.clone(),
            sequence: self.kept.sequence + 1,
        }
    }

    fn reading_context<'a>(
        &'a self,
        origin: &'a Origin,
        mounts: &'a Mounts,
        over: &'a BTreeSet<String>,
        left_out: u64,
    ) -> ReadingContext<'a> {
        let (now_ns, since_boot) = now();
        let last_ns = self.kept.state.as_ref().map(|state| state.last_ns);
        // Without an earlier reading by this process, only the wall clock shows how long the
        // interval was.
        let interval_ns = match self.last {
            Some(last) => since_boot.saturating_sub(last).as_nanos() as i64,
            None => last_ns.map_or(0, |last| (now_ns - last).max(0)),
        };
        let booted_ns = now_ns - since_boot.as_nanos() as i64;
        ReadingContext { now_ns, booted_ns, interval_ns, origin, mounts, settings: &self.settings, left_out, over }
    }

    /// Read the sums, compare them with the last reading, and keep the batch.
    fn sample(&mut self, over: &BTreeSet<String>, on_event: &dyn Fn(Event)) {
        let dropped = self.dropped_series();
        if let Err(error) = self.try_sample(over, on_event) {
            on_event(Event::Missed(error));
            self.missed += 1;
        }
        self.publish();
        if dropped == 0 && self.dropped_series() > 0 {
            on_event(Event::Dropped(self.dropped_series()));
        }
    }

    fn dropped_series(&self) -> usize {
        self.published.as_ref().map_or(0, |published| published.exposition.dropped())
    }

    fn publish(&self) {
        let Some(published) = &self.published else { return };
        let health = Health {
            started_ns: published.started_ns,
            missed: self.missed,
            turned_away: published.page.turned_away(),
            destinations: self.destinations(),
        };
        published.page.set(published.exposition.text(&health));
    }

    fn destinations(&self) -> Vec<DestinationStatus> {
        let dropped = [self.kept.dropped, self.kept.second_dropped];
        let destination = |(route, dropped): (&Route, i64)| {
            let waiting = route.spool.waiting().unwrap_or_default();
            let Sending { sent_ns, failed, refused, uncounted, failing } = route.progress.get();
            DestinationStatus {
                name: route.name.into(),
                sent_ns,
                waiting_batches: waiting.len() as u64,
                waiting_bytes: waiting.iter().map(|one| one.bytes).sum(),
                dropped_batches: dropped as u64,
                set_aside: route.spool.aside(),
                refused_points: refused,
                failed_attempts: failed,
                uncounted_answers: uncounted.into_iter().map(|(code, number)| (code.into(), number)).collect(),
                failing,
            }
        };
        self.routes.iter().zip(dropped).map(destination).collect()
    }

    fn try_sample(&mut self, over: &BTreeSet<String>, on_event: &dyn Fn(Event)) -> Result<(), AgentError> {
        let mounts = Mounts::read().map_err(AgentError::Kernel)?;
        self.accounting.set_mounts(&mounts.points).map_err(AgentError::Kernel)?;
        let reading = self.accounting.read().map_err(AgentError::Kernel)?;
        let (files, left_out) = self.accounting.take_files().map_err(AgentError::Kernel)?;
        self.files.extend(files);
        let jobs = self.jobs(&reading);
        let origin = self.origin();
        let mut batch;
        let (state, ended, counted) = {
            let context = self.reading_context(&origin, &mounts, over, left_out);
            batch = Batch::new(&origin, context.now_ns);
            let generation = self.accounting.generation();
            let before = self.kept.state.clone().filter(|state| state.generation == generation);
            let (state, sampled) = match before {
                Some(mut state) => {
                    let sampled = state.sample(&reading, &self.files, &jobs, &context);
                    (state, sampled)
                }
                None => {
                    let sampled = self.kept.state.clone().unwrap_or_default().end_all(&context);
                    (State::begin(generation, &reading, &jobs, &context), sampled)
                }
            };
            batch.agent_batches.push(self.about_itself(&context, sampled.jobs)?);
            let Sampled { samples, totals, files, ended, .. } = sampled;
            (batch.job_samples, batch.job_totals, batch.job_files) = (samples, totals, files);
            let (now_ns, interval_ns) = (context.now_ns, context.interval_ns);
            let (of_node, counted) = self.node.sample(&origin, now_ns, interval_ns);
            batch.job_samples.extend(of_node);
            (state, ended, counted)
        };
        self.spool.keep(&mut self.kept, state, &batch)?;
        for route in self.routes.iter().skip(1) {
            // The first destination has the batch, whatever becomes of this one.
            if let Err(error) = route.spool.keep_second(&mut self.kept) {
                on_event(Event::Unkept(error));
            }
        }
        self.node.keep(counted);
        self.files.clear();
        self.last = Some(now().1);
        self.is_resumed = false;
        self.cpu_ns = own_cpu_ns();
        if let Some(published) = &mut self.published {
            published.exposition.add(&batch);
        }
        self.remember(batch);
        let last = |id: &u32| reading.uses.get(id).copied().unwrap_or_default();
        let over = ended.iter().filter_map(|(id, devices)| Some((reading.accounts.get(id)?, devices.as_slice(), last(id))));
        let over: Vec<(&Account, &[u64], Use)> = over.collect();
        self.accounting.forget(&over).map_err(AgentError::Kernel)
    }

    fn jobs(&mut self, reading: &Reading) -> BTreeMap<u32, Job> {
        reading.accounts.iter().map(|(id, account)| (*id, self.binder.job(account, &self.accounting))).collect()
    }

    fn remember(&mut self, batch: Batch) {
        for total in batch.job_totals {
            let files = batch.job_files.iter().filter(|file| file.job_id == total.job_id).cloned().collect();
            self.ended.push_back((total, files));
        }
        while self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }

    fn about_itself(&self, context: &ReadingContext<'_>, jobs: i64) -> Result<AgentBatches<'static>, AgentError> {
        let origin = context.origin;
        Ok(AgentBatches {
            ts_ns: context.now_ns,
            interval_ns: context.interval_ns,
            cluster: origin.cluster.clone().into(),
            node: origin.node.clone().into(),
            agent: origin.agent.clone().into(),
            sequence: origin.sequence,
            version: env!("CARGO_PKG_VERSION").into(),
            is_resumed: self.is_resumed,
            jobs,
            lost: self.accounting.lost() as i64,
            dropped_batches: self.kept.dropped,
            refused_batches: self.spool.aside().batches as i64,
            waiting_batches: self.spool.waiting()?.len() as i64,
            cpu_ns: own_cpu_ns().saturating_sub(self.cpu_ns) as i64,
            memory_bytes: own_memory_bytes() as i64,
        })
    }
}

fn routes(targets: &[Target], spool: &Spool, kept: &mut Kept) -> Result<Vec<Route>, AgentError> {
    let mut routes = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let spool = if place == 0 { spool.share()? } else { spool.second(target.name())? };
        if place > 0 {
            let was_answered = Done::read(spool.folder()).has(&kept.agent, kept.sequence);
            spool.begin_second(kept, was_answered)?;
        }
        routes.push(Route { name: target.name(), spool, progress: Arc::default() });
    }
    Ok(routes)
}

fn report(outcome: Result<Outcome, AgentError>, on_event: &dyn Fn(Event)) {
    on_event(match outcome {
        Ok(Outcome::Idle | Outcome::Landed) => return,
        Ok(Outcome::Refused(why)) => Event::Refused(why),
        Ok(Outcome::Rejected(points, why)) => Event::Rejected(points, why),
        Err(error) => Event::Waits(error),
    });
}

impl Published {
    fn open(options: &MetricsOptions) -> Result<Published, AgentError> {
        let endpoint = Endpoint::open(options)?;
        let (page, exposition) = (endpoint.page(), Exposition::new(options.series));
        Ok(Published { exposition, endpoint: Some(endpoint), page, started_ns: now().0 })
    }
}

/// Unix time [ns], and time since boot by the clock that the programs use.
fn now() -> (i64, Duration) {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let since_boot = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
    (wall.as_nanos() as i64, since_boot)
}

/// End of the current interval. Intervals end at the same moments on all nodes.
fn next_end(interval: Duration) -> SystemTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let length = interval.as_nanos().max(1);
    SystemTime::UNIX_EPOCH + Duration::from_nanos(((since / length + 1) * length) as u64)
}

fn own_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn own_memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}

/// Give processes that ran before the programs were loaded their jobs, from /proc.
fn seed(accounting: &mut Accounting, settings: &Settings) {
    let root = sysdock_mounts::groups::mount_point();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        // A process that ends meanwhile needs no job; one that finds no room is counted with the
        // left-out calls.
        if let Some(account) = account_in_proc(pid, settings, root.as_deref()) {
            let _ = accounting.seed(pid, &account);
        }
    }
}

/// Account of a process, from /proc; `None`: its environment names no job.
fn account_in_proc(pid: u32, settings: &Settings, root: Option<&Path>) -> Option<Account> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let environment = fs::read(folder.join("environ")).ok()?;
    let value = |name: &str| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .filter(|value| !value.is_empty())
    };
    let of = |scheduler: u8, kind: VariableKind| {
        settings.variables.iter().filter(move |one| one.scheduler == scheduler && one.kind == kind).map(|one| one.name.as_str())
    };
    let id = settings.variables.iter().filter(|one| one.kind == VariableKind::Id && value(&one.name).is_some());
    let id = id.min_by_key(|one| one.needs_marker)?;
    if id.needs_marker && !of(id.scheduler, VariableKind::Marker).any(|marker| value(marker).is_some()) {
        return None;
    }
    let group = fs::read_to_string(folder.join("cgroup")).ok()?;
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let cgroup = root.and_then(|root| fs::metadata(root.join(group)).ok()).map_or(0, |found| found.ino());
    Some(Account {
        job: value(&id.name)?.to_vec(),
        name: of(id.scheduler, VariableKind::Name).find_map(value).unwrap_or_default().to_vec(),
        cgroup,
        uid: fs::metadata(&folder).ok()?.uid(),
        scheduler: id.scheduler,
        begun_ns: now().1.as_nanos() as u64,
        command: fs::read(folder.join("comm")).unwrap_or_default().trim_ascii_end().to_vec(),
        ..Account::default()
    })
}
