//! Resolves descriptors, tags and path arguments to open files and objects.

use std::{borrow::Cow, rc::Rc};

use crate::{effects::Context, files::OpenFile, system::System, text};
use sysdock_calls::ObjectId;

/// A descriptor argument: number and contents of its tag.
pub(crate) type Descriptor<'a> = (i32, Option<&'a [u8]>);

/// strace's name of the working directory as a directory argument.
const AT_FDCWD: i32 = -100;

/// No path of the kernel is longer (PATH_MAX, linux/limits.h). Longer directories are not joined
/// with names: a line with a directory of many megabytes would make every relative path that
/// follows as long.
const LONGEST_PATH: usize = 4096;

/// Suffix that the kernel adds to the name of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// The descriptor for display; the working directory has none.
pub(crate) fn shown(fd: i32) -> Option<i32> {
    (fd >= 0).then_some(fd)
}

/// A descriptor and its tag: `3`, `3</etc/passwd>`, `AT_FDCWD</home>`.
pub(crate) fn descriptor(argument: &[u8]) -> Option<Descriptor<'_>> {
    let (fd, rest) = match argument.strip_prefix(b"AT_FDCWD") {
        Some(rest) => (AT_FDCWD, rest),
        None => {
            let (fd, rest) = text::number(argument)?;
            // `-e raw` prints the register: AT_FDCWD is 0xffffff9c.
            let fd = i32::try_from(fd).or_else(|_| u32::try_from(fd).map(u32::cast_signed)).ok()?;
            (fd, rest)
        }
    };
    match rest {
        // Nothing follows the tag of an argument.
        [b'<', tag @ .., b'>'] => Some((fd, Some(tag))),
        [b'<', ..] => {
            let end = text::tag_end(rest)?;
            Some((fd, Some(&rest[1..end - 1])))
        }
        _ => Some((fd, None)),
    }
}

impl System {
    /// The open file of a descriptor argument. A tag comes from the kernel and overrides the
    /// rebuilt state.
    pub(crate) fn file(
        &mut self,
        context: &Context<'_>,
        (fd, tag): Descriptor<'_>,
        held: Option<Rc<OpenFile>>,
    ) -> Option<Rc<OpenFile>> {
        let known = held.or_else(|| self.threads.get(context.thread).fds.borrow().get(fd).cloned());
        let bad = context.call.returned.errno == Some(b"EBADF");
        match (known, tag) {
            // A descriptor that is not open has no file, even if lines of the log are missing.
            (_, None) if bad => None,
            (Some(file), None) => Some(file),
            (Some(file), Some(tag)) => {
                self.agree(&file, tag);
                Some(file)
            }
            (None, Some(tag)) => {
                let file = OpenFile::new(Some(self.intern_tag(tag)), None, false);
                // A call in two halves may end after another thread closed the descriptor.
                if fd >= 0 && context.held.is_none() {
                    self.set_fd(context.thread, fd, Rc::clone(&file), false);
                }
                Some(file)
            }
            (None, None) if (0..=2).contains(&fd) => {
                const NAMES: [&[u8]; 3] = [b"<stdin>", b"<stdout>", b"<stderr>"];
                let object = self.objects.intern(NAMES[usize::try_from(fd).expect("0, 1 or 2")]);
                let file = OpenFile::new(Some(object), None, false);
                self.set_fd(context.thread, fd, Rc::clone(&file), false);
                Some(file)
            }
            (None, None) => None,
        }
    }

    /// Make an open file agree with its tag.
    fn agree(&mut self, file: &OpenFile, tag: &[u8]) {
        let known = file.object.get();
        if known.is_some_and(|object| self.objects.name(object) == tag) {
            return;
        }
        let object = self.intern_tag(tag);
        if known == Some(object) {
            return;
        }
        let renamed = known.is_some_and(|known| self.was_renamed(known, object));
        file.object.set(Some(object));
        if !renamed {
            // The number was given to another file without a line in the log: its position is
            // unknown.
            file.position.set(None);
        }
    }

    /// Whether the file `old` may now be called `new`, because it or a directory above it was
    /// renamed.
    fn was_renamed(&self, old: ObjectId, new: ObjectId) -> bool {
        /// Number of parent directories that are compared: each requires hashing two paths.
        const DEEPEST: usize = 64;
        let (mut before, mut after) = (self.objects.name(old), self.objects.name(new));
        let mut ids = (Some(old), Some(new));
        for _ in 0..if self.renamed.is_empty() { 0 } else { DEEPEST } {
            if let (Some(old), Some(new)) = ids
                && self.renamed.get(&new) == Some(&old)
            {
                return true;
            }
            let (Some(old_end), Some(new_end)) = (memchr::memrchr(b'/', before), memchr::memrchr(b'/', after)) else {
                return false;
            };
            if old_end == 0 || new_end == 0 || before[old_end..] != after[new_end..] {
                return false;
            }
            (before, after) = (&before[..old_end], &after[..new_end]);
            ids = (self.objects.find(before), self.objects.find(after));
        }
        false
    }

    pub(crate) fn set_fd(&mut self, thread: usize, fd: i32, file: Rc<OpenFile>, close_on_exec: bool) {
        self.threads.get(thread).fds.borrow_mut().set(fd, file, close_on_exec);
    }

    /// The object of a tag, including `/dev/null<char 1:3>` and `/tmp/x (deleted)`.
    pub(crate) fn intern_tag(&mut self, tag: &[u8]) -> ObjectId {
        let plain = match memchr::memchr(b'<', tag) {
            Some(nested) if tag.first() == Some(&b'/') => &tag[..nested],
            _ => tag,
        };
        let name = text::unescape(plain);
        match name.strip_suffix(DELETED) {
            // A file has exactly this name.
            Some(_) if self.objects.find(&name).is_some_and(|object| self.named_deleted.contains(&object)) => {
                self.objects.intern(&name)
            }
            Some(file) => self.objects.intern(file),
            None => self.objects.intern(&name),
        }
    }

    /// The object of the tag of a file that was opened by this path: ` (deleted)` may be part of
    /// its name.
    pub(crate) fn intern_opened(&mut self, tag: &[u8], path: Option<&[u8]>) -> ObjectId {
        if tag.ends_with(DELETED) && path.is_some_and(|path| path.ends_with(DELETED)) {
            let object = self.objects.intern(&text::unescape(tag));
            // A file with this suffix that was deleted meanwhile has the suffix twice.
            if !self.objects.name(object).strip_suffix(DELETED).is_some_and(|name| name.ends_with(DELETED)) {
                self.named_deleted.insert(object);
                return object;
            }
        }
        self.intern_tag(tag)
    }

    /// The object of a path argument, relative to a directory argument or the working directory.
    pub(crate) fn resolve(&mut self, context: &Context<'_>, base: Option<Descriptor<'_>>, path: &[u8]) -> ObjectId {
        self.learn_cwd(context, base);
        if path.starts_with(b"/") {
            return self.objects.intern(&sysdock_calls::normal(Cow::Borrowed(path)));
        }
        let mut full = std::mem::take(&mut self.full_path);
        full.clear();
        let thread = self.threads.get(context.thread);
        // A relative name in an impossible directory is treated like one in an unknown directory.
        let mut begin = |directory: &[u8]| {
            if directory.starts_with(b"/") && directory.len() < LONGEST_PATH {
                full.extend_from_slice(directory);
            }
        };
        match base {
            None | Some((AT_FDCWD, _)) => begin(thread.cwd.borrow().as_deref().unwrap_or_default()),
            Some((_, Some(tag))) => begin(&text::unescape(tag)),
            Some((fd, None)) => {
                let object = thread.fds.borrow().get(fd).and_then(|file| file.object.get());
                begin(object.map(|object| self.objects.name(object)).unwrap_or_default());
            }
        }
        let object = if full.is_empty() {
            self.objects.intern(path)
        } else {
            full.push(b'/');
            full.extend_from_slice(path);
            self.objects.intern(&sysdock_calls::normal(Cow::Borrowed(&full)))
        };
        self.full_path = full;
        object
    }

    /// Learn the working directory from `AT_FDCWD</home>`.
    pub(crate) fn learn_cwd(&self, context: &Context<'_>, base: Option<Descriptor<'_>>) {
        let Some((AT_FDCWD, Some(tag))) = base else { return };
        let mut cwd = self.threads.get(context.thread).cwd.borrow_mut();
        if cwd.as_deref() != Some(tag) {
            let name = text::unescape(tag);
            if cwd.as_deref() != Some(name.as_ref()) {
                *cwd = Some(name.as_ref().into());
            }
        }
    }
}
