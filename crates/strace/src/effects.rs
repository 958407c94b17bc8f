//! The meaning of a finished call: its object, its offset and size, and its effect on the state of
//! the traced system.

use std::rc::Rc;

use memchr::memmem;

use crate::{
    fields::Call,
    files::{Held, OpenFile},
    open_flags::OpenFlags,
    paths,
    resolve::{descriptor, shown},
    system::System,
    text,
    threads::Birth,
};
use sysdock_calls::{
    CallRow, ObjectId, Program, object_id,
    syscalls::{Class, Shape},
};

/// Budget of steps in descriptor tables that each rename adds, and the initial budget. Without this
/// limit, many renames in a process with a hundred thousand descriptors would take hours.
const STEPS_PER_RENAME: u64 = 4096;
pub(crate) const STEPS_AT_FIRST: u64 = 1 << 24;

/// A call and the thread that made it.
pub(crate) struct Context<'a> {
    pub(crate) thread: usize,
    pub(crate) call: &'a Call<'a>,
    /// The open file of argument 0 when the call began, for a call printed in two halves.
    pub(crate) held: Option<&'a Held>,
    pub(crate) started_ns: i64,
}

impl Context<'_> {
    /// The file of `held`.
    pub(crate) fn held_file(&self) -> Option<Rc<OpenFile>> {
        self.held.map(|held| Rc::clone(&held.file))
    }

    /// When the call ended, as far as the log shows.
    pub(crate) fn ended_ns(&self) -> i64 {
        self.started_ns.saturating_add(self.call.dur_ns.unwrap_or(0))
    }
}

impl System {
    /// Apply the effects of a call, and fill in its row beyond name, result and time.
    ///
    /// The row is filled in place, because copying it right after it was written stalls the
    /// processor. In a merged log, returns the serial number of the earlier row that this call
    /// overlapped.
    pub(crate) fn apply(&mut self, shape: &Shape, class: Class, context: &Context<'_>, row: &mut CallRow) -> Option<u64> {
        let arguments = &context.call.arguments;
        match *shape {
            Shape::Transfer(requested, at) => return self.transfer(context, row, class, requested, at),
            Shape::ReceiveMessage => return self.receive_message(context, row, class),
            Shape::Messages => self.messages(context, row, class),
            Shape::Between { from, from_offset, to, to_offset, size } => {
                return self.between(context, row, (from, from_offset), (to, to_offset), size);
            }
            Shape::Plain => self.learn_ids(context),
            Shape::Submit | Shape::Reap => {}
            Shape::Fd => {
                self.on_fd(context, row);
            }
            Shape::Directory => self.directory(context, row),
            Shape::Path(path) => {
                self.on_path(context, row, None, path);
            }
            Shape::PathAt(directory, path) => {
                self.on_path(context, row, Some(directory), path);
            }
            Shape::Open(directory, path, flags) => self.open(context, row, directory, path, arguments.get(flags)),
            Shape::OpenQueue => self.open_queue(context, row),
            Shape::RemoveQueue => row.object = object_id(self.queue(context)),
            Shape::Configure => self.configure(context, row),
            Shape::AddRule => self.add_rule(context, row),
            Shape::Create => self.open(context, row, None, 0, b"O_CREAT|O_WRONLY|O_TRUNC"),
            Shape::Close => self.close(context, row),
            Shape::CloseRange => self.close_range(context),
            Shape::Seek => self.seek(context, row),
            Shape::Dup => self.duplicate(context, row, None, false),
            Shape::DupTo => {
                let target = descriptor(arguments.get(1)).map(|(fd, _)| fd);
                self.duplicate(context, row, target, contains(arguments.get(2), b"O_CLOEXEC"));
            }
            Shape::Fcntl => self.fcntl(context, row),
            Shape::Ioctl => self.ioctl(context, row),
            Shape::Truncate => self.truncate(context, row),
            Shape::NewFd(word) => self.new_fd(context, row, word.as_bytes()),
            Shape::MemfdCreate => {
                let name = arguments.string(0).unwrap_or_default();
                self.new_fd(context, row, &[b"/memfd:", name.as_ref()].concat());
            }
            Shape::NewPair(word, argument) => self.new_pair(context, row, word, arguments.get(argument)),
            Shape::Map => self.map(context, row),
            Shape::Fork => self.fork(context),
            Shape::Exec => self.exec(context, row),
            Shape::ChangeDir => self.change_dir(context, row),
            Shape::ChangeDirFd => self.change_dir_fd(context, row),
            Shape::Rename(old_dir, old, new_dir, new) => self.rename(context, row, (old_dir, old), (new_dir, new)),
            Shape::Remove(directory, path) => self.remove(context, row, directory, path),
            Shape::Unshare => self.unshare(context),
            Shape::Ring => self.new_fd(context, row, b"io_uring"),
        }
        None
    }

    /// A call on the descriptor in its first argument. Returns the descriptor and its object.
    pub(crate) fn on_fd(&mut self, context: &Context<'_>, row: &mut CallRow) -> (Option<i32>, Option<ObjectId>) {
        let Some(target) = descriptor(context.call.arguments.get(0)) else { return (None, None) };
        let file = self.file(context, target, context.held_file());
        let object = file.and_then(|file| file.object.get());
        self.learn_size(context, object);
        let fd = shown(target.0);
        set_file(row, fd, object);
        (fd, object)
    }

    fn directory(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (_, object) = self.on_fd(context, row);
        if let (Some(object), Some(_)) = (object, context.call.returned.value) {
            self.objects.set_directory(object);
        }
    }

    /// A call on a descriptor that is not its first argument.
    fn on_other_fd(&mut self, context: &Context<'_>, row: &mut CallRow, argument: &[u8]) {
        let Some(target) = descriptor(argument) else { return };
        let object = self.file(context, target, None).and_then(|file| file.object.get());
        set_file(row, shown(target.0), object);
    }

    /// The object of a message queue. The library passes the name without the slash that the
    /// kernel's names of its descriptors have.
    fn queue(&mut self, context: &Context<'_>) -> Option<ObjectId> {
        let name = context.call.arguments.string(0).filter(|name| !name.is_empty())?;
        let slash: &[u8] = if name.starts_with(b"/") { b"" } else { b"/" };
        Some(self.objects.intern(&[slash, name.as_ref()].concat()))
    }

    fn open_queue(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let returned = context.call.returned;
        let object = match returned.tag {
            Some(tag) => Some(self.intern_tag(tag)),
            None => self.queue(context),
        };
        row.object = object_id(object);
        let Some(fd) = returned.value.and_then(|fd| i32::try_from(fd).ok()).filter(|fd| *fd >= 0) else { return };
        // Always close-on-exec (man 3 mq_open).
        self.set_fd(context.thread, fd, OpenFile::new(object, None, false), true);
        set_file(row, Some(fd), object);
    }

    fn configure(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let arguments = &context.call.arguments;
        match arguments.get(1) {
            b"FSCONFIG_SET_PATH" | b"FSCONFIG_SET_PATH_EMPTY" => match arguments.string(3) {
                Some(path) if path.is_empty() => self.on_other_fd(context, row, arguments.get(4)),
                Some(path) => {
                    let object = self.resolve(context, descriptor(arguments.get(4)), &path);
                    row.object = object_id(Some(object));
                }
                None => {}
            },
            b"FSCONFIG_SET_FD" => self.on_other_fd(context, row, arguments.get(4)),
            _ => {
                self.on_fd(context, row);
            }
        }
    }

    fn add_rule(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let fields = paths::structure(context.call.arguments.get(2));
        match fields.iter().find_map(|field| field.strip_prefix(b"parent_fd=")) {
            Some(directory) => self.on_other_fd(context, row, directory),
            None => {
                self.on_fd(context, row);
            }
        }
    }

    /// A call on a path, or on a directory by its descriptor and an empty path. Returns the object.
    fn on_path(&mut self, context: &Context<'_>, row: &mut CallRow, directory: Option<usize>, path: usize) -> Option<ObjectId> {
        let base = directory.and_then(|index| descriptor(context.call.arguments.get(index)));
        let object = match context.call.arguments.string(path) {
            Some(path) if path.is_empty() && base.is_some() => return self.on_fd(context, row).1,
            Some(path) => Some(self.resolve(context, base, &path)),
            None => None,
        };
        self.learn_size(context, object);
        row.object = object_id(object);
        object
    }

    fn open(&mut self, context: &Context<'_>, row: &mut CallRow, directory: Option<usize>, path: usize, flags: &[u8]) {
        let base = directory.and_then(|index| descriptor(context.call.arguments.get(index)));
        let returned = context.call.returned;
        // The tag of the returned descriptor is the kernel's name of the file, with links resolved.
        let object = match returned.tag {
            Some(tag) => {
                self.learn_cwd(context, base);
                Some(self.intern_opened(tag, context.call.arguments.string(path).as_deref()))
            }
            None => context.call.arguments.string(path).map(|path| self.resolve(context, base, &path)),
        };
        let fd = returned.value.and_then(|fd| i32::try_from(fd).ok());
        if let Some(fd) = fd {
            let flags = OpenFlags::of(flags);
            if let Some(object) = object {
                self.opened(object, flags);
            }
            let file = OpenFile::new(object, Some(0), flags.append);
            self.set_fd(context.thread, fd, file, flags.close_on_exec);
        }
        set_file(row, fd, object);
    }

    /// Set the size of a file that a successful open created or truncated.
    fn opened(&mut self, object: ObjectId, flags: OpenFlags) {
        // The file was truncated or is new.
        if flags.truncate || flags.exclusive {
            self.objects.set_size(object, Some(0));
        }
        if flags.directory {
            self.objects.set_directory(object);
        }
    }

    fn close(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (fd, _) = self.on_fd(context, row);
        // A call in two halves took effect at its start (see `System::hold`): the number may be in
        // use again.
        if let (Some(fd), None) = (fd, &context.held) {
            self.threads.get(context.thread).fds.borrow_mut().remove(fd);
        }
    }

    fn close_range(&mut self, context: &Context<'_>) {
        let arguments = &context.call.arguments;
        if context.call.returned.value == Some(0)
            && let Some(first) = text::leading_number(arguments.get(0))
        {
            let last = text::leading_number(arguments.get(1)).unwrap_or(i64::MAX);
            let mark_only = contains(arguments.get(2), b"CLOEXEC");
            self.threads.get(context.thread).fds.borrow_mut().close_range(first, last, mark_only);
        }
    }

    fn duplicate(&mut self, context: &Context<'_>, row: &mut CallRow, target: Option<i32>, close_on_exec: bool) {
        let Some(source) = descriptor(context.call.arguments.get(0)) else { return };
        let file = self.file(context, source, context.held_file());
        let object = file.as_ref().and_then(|file| file.object.get());
        let made = context.call.returned.value.and_then(|fd| i32::try_from(fd).ok());
        if let Some(fd) = made
            && target.is_none_or(|target| target == fd && target != source.0)
        {
            let file = file.unwrap_or_else(|| OpenFile::new(None, None, false));
            self.set_fd(context.thread, fd, file, close_on_exec);
        }
        set_file(row, made.or(shown(source.0)), object);
    }

    fn fcntl(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let command = context.call.arguments.get(1);
        if command.starts_with(b"F_DUPFD") {
            return self.duplicate(context, row, None, command == b"F_DUPFD_CLOEXEC");
        }
        if command.starts_with(b"F_DUP2FD") {
            let target = descriptor(context.call.arguments.get(2)).map(|(fd, _)| fd);
            return self.duplicate(context, row, target, command == b"F_DUP2FD_CLOEXEC");
        }
        let (fd, _) = self.on_fd(context, row);
        let argument = context.call.arguments.get(2);
        if let (Some(fd), Some(0)) = (fd, context.call.returned.value) {
            let fds = Rc::clone(&self.threads.get(context.thread).fds);
            match command {
                // truss prints the number.
                b"F_SETFD" => {
                    let close = contains(argument, b"FD_CLOEXEC") || text::leading_number(argument) == Some(1);
                    fds.borrow_mut().set_close_on_exec(fd, close);
                }
                b"F_SETFL" => {
                    if let Some(file) = fds.borrow().get(fd) {
                        // truss prints FAPPEND.
                        file.append.set(contains(argument, b"APPEND"));
                    }
                }
                _ => {}
            }
        }
    }

    fn ioctl(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (fd, _) = self.on_fd(context, row);
        let request = context.call.arguments.get(1);
        if let (Some(fd), Some(0)) = (fd, context.call.returned.value)
            && matches!(request, b"FIOCLEX" | b"FIONCLEX")
        {
            let fds = &self.threads.get(context.thread).fds;
            fds.borrow_mut().set_close_on_exec(fd, request == b"FIOCLEX");
        }
    }

    fn truncate(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (_, object) = self.on_fd(context, row);
        if let (Some(object), Some(0)) = (object, context.call.returned.value) {
            self.objects.set_size(object, text::leading_number(context.call.arguments.get(1)));
        }
    }

    fn new_fd(&mut self, context: &Context<'_>, row: &mut CallRow, word: &[u8]) {
        let returned = context.call.returned;
        let Some(fd) = returned.value.and_then(|fd| i32::try_from(fd).ok()) else { return };
        let object = match returned.tag {
            Some(tag) => Some(self.intern_tag(tag)),
            None if word == b"unknown" || word == b"file handle" => None,
            None if word.starts_with(b"/") || word == b"socket" => Some(self.objects.intern(word)),
            None => Some(self.objects.intern(&[b"anon_inode:", word].concat())),
        };
        let position = word.starts_with(b"/").then_some(0);
        let close_on_exec = context.call.arguments.iter().any(|a| contains(a, b"CLOEXEC")) || word == b"pidfd";
        self.set_fd(context.thread, fd, OpenFile::new(object, position, false), close_on_exec);
        set_file(row, Some(fd), object);
    }

    fn new_pair(&mut self, context: &Context<'_>, row: &mut CallRow, word: &str, pair: &[u8]) {
        if context.call.returned.value != Some(0) {
            return;
        }
        let close_on_exec = context.call.arguments.iter().any(|a| contains(a, b"CLOEXEC"));
        let mut first = None;
        for item in paths::list(pair) {
            let Some((fd, tag)) = descriptor(item) else { continue };
            let object = match tag {
                Some(tag) => self.intern_tag(tag),
                None => self.objects.intern(word.as_bytes()),
            };
            self.set_fd(context.thread, fd, OpenFile::new(Some(object), None, false), close_on_exec);
            first.get_or_insert((fd, object));
        }
        if let Some((fd, object)) = first {
            set_file(row, Some(fd), Some(object));
        }
    }

    fn map(&mut self, context: &Context<'_>, row: &mut CallRow) {
        match descriptor(context.call.arguments.get(4)) {
            Some(target) if target.0 >= 0 => {
                let file = self.file(context, target, None);
                let object = file.and_then(|file| file.object.get());
                set_file(row, Some(target.0), object);
            }
            // Anonymous memory.
            _ => row.class = Class::Memory as u8,
        }
    }

    fn fork(&mut self, context: &Context<'_>) {
        let child = context.call.returned.value.and_then(|tid| i32::try_from(tid).ok()).filter(|tid| *tid > 0);
        if context.call.arguments.truss {
            if let Some(child) = child {
                self.created_by_truss(context.thread, child, context.started_ns);
            }
        } else if let Some(child) = child {
            let flags = context.call.arguments.iter().find(|a| contains(a, b"CLONE_")).unwrap_or_default();
            self.forked(context.thread, child, Birth::of(flags), context.started_ns);
        }
    }

    fn exec(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (base, path, argv) = match context.call.name {
            b"execveat" => (descriptor(context.call.arguments.get(0)), 1, 2),
            _ => (None, 0, 1),
        };
        let Some(path) = context.call.arguments.string(path) else { return };
        let object = self.resolve(context, base, &path);
        if context.call.returned.value == Some(0) {
            let comm_id = self.commands.intern(sysdock_calls::comm(self.objects.name(object)));
            let command = match paths::command_line(context.call.arguments.get(argv)) {
                // truss prints an address here, and the words on later lines if requested.
                line if line.is_empty() && context.call.arguments.truss => {
                    paths::cut_command(sysdock_table::readable(&path).into_owned())
                }
                line => line,
            };
            self.threads.exec(context.thread, Rc::new(Program { comm_id, command }));
        }
        row.object = object_id(Some(object));
    }

    fn change_dir(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let Some(path) = context.call.arguments.string(0) else { return };
        let object = self.resolve(context, None, &path);
        if context.call.returned.value == Some(0) {
            self.set_cwd(context.thread, object);
        }
        row.object = object_id(Some(object));
    }

    fn change_dir_fd(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let (_, object) = self.on_fd(context, row);
        if let (Some(object), Some(0)) = (object, context.call.returned.value) {
            self.set_cwd(context.thread, object);
        }
    }

    fn set_cwd(&mut self, thread: usize, object: ObjectId) {
        self.objects.set_directory(object);
        let name = self.objects.name(object);
        // A relative path in an unknown directory is unknown.
        *self.threads.get(thread).cwd.borrow_mut() = name.starts_with(b"/").then(|| name.into());
    }

    fn rename(&mut self, context: &Context<'_>, row: &mut CallRow, old: (Option<usize>, usize), new: (Option<usize>, usize)) {
        let arguments = &context.call.arguments;
        let mut named = |(directory, path): (Option<usize>, usize)| {
            let base = directory.and_then(|index| descriptor(arguments.get(index)));
            arguments.string(path).map(|path| self.resolve(context, base, &path))
        };
        let (old, new) = (named(old), named(new));
        if let (Some(old), Some(new), Some(0)) = (old, new, context.call.returned.value) {
            let (old_size, new_size) = (self.objects.size(old), self.objects.size(new));
            let swapped = contains(arguments.get(4), b"RENAME_EXCHANGE");
            self.objects.set_size(new, old_size);
            self.objects.set_size(old, new_size.filter(|_| swapped));
            self.renamed.insert(new, old);
            if swapped {
                self.renamed.insert(old, new);
            }
            self.rename_steps = self.rename_steps.saturating_add(STEPS_PER_RENAME);
            self.threads.get(context.thread).fds.borrow().rename(old, new, swapped, &mut self.rename_steps);
        }
        row.object = object_id(old);
    }

    fn remove(&mut self, context: &Context<'_>, row: &mut CallRow, directory: Option<usize>, path: usize) {
        let object = self.on_path(context, row, directory, path);
        if let (Some(object), Some(0)) = (object, context.call.returned.value) {
            self.objects.set_size(object, None);
        }
    }

    /// A thread that is told another id than its lines have lives in another PID namespace.
    fn learn_ids(&mut self, context: &Context<'_>) {
        if matches!(context.call.name, b"set_tid_address" | b"gettid") {
            let thread = self.threads.get_mut(context.thread);
            thread.has_other_ids |= context.call.returned.value.is_some_and(|id| id > 0 && id != i64::from(thread.tid));
        }
    }

    fn unshare(&mut self, context: &Context<'_>) {
        if context.call.returned.value == Some(0) && contains(context.call.arguments.get(0), b"CLONE_NEWPID") {
            self.threads.get_mut(context.thread).children_have_other_ids = true;
        }
        if context.call.returned.value == Some(0) && contains(context.call.arguments.get(0), b"CLONE_FILES") {
            let thread = self.threads.get_mut(context.thread);
            let own = thread.fds.borrow().clone();
            thread.fds = Rc::new(std::cell::RefCell::new(own));
        }
    }

    /// Learn the size of a file from `st_size` of a successful stat: the offset of the next append.
    fn learn_size(&mut self, context: &Context<'_>, object: Option<ObjectId>) {
        let (Some(object), Some(0)) = (object, context.call.returned.value) else { return };
        let Some(status) = context.call.arguments.iter().find(|argument| argument.starts_with(b"{st")) else { return };
        let rest = match status.strip_prefix(b"{st_mode=S_IF") {
            Some(rest) => rest,
            None => {
                let Some(kind) = memmem::find(status, b"_mode=S_IF") else { return };
                &status[kind + b"_mode=S_IF".len()..]
            }
        };
        if rest.starts_with(b"DIR") {
            self.objects.set_directory(object);
        } else if rest.starts_with(b"REG") {
            // No field before the size contains a comma.
            let mut fields = rest.split(|byte| *byte == b',').map(<[u8]>::trim_ascii_start);
            let size = fields.find_map(|field| field.strip_prefix(b"st_size=").or_else(|| field.strip_prefix(b"stx_size=")));
            let size = size.and_then(text::leading_number);
            self.objects.set_size(object, size);
        }
    }
}

/// Set descriptor and object of a row.
pub(crate) fn set_file(row: &mut CallRow, fd: Option<i32>, object: Option<ObjectId>) {
    row.fd = fd.unwrap_or(-1);
    row.object = object_id(object);
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.len() >= word.len() && memmem::find(text, word).is_some()
}
