//! From descriptors, tags and path arguments to open files and objects.

use std::{borrow::Cow, rc::Rc};

use crate::{effects::Context, files::OpenFile, objects::ObjectId, paths, system::System, text};

/// A descriptor argument: number and contents of its tag.
pub(crate) type Descriptor<'a> = (i32, Option<&'a [u8]>);

/// What strace prints for the working directory as a directory argument.
const AT_FDCWD: i32 = -100;

/// The working directory is no descriptor a reader would look for.
pub(crate) fn shown(fd: i32) -> Option<i32> {
    (fd >= 0).then_some(fd)
}

/// A descriptor and its tag: `3`, `3</etc/passwd>`, `AT_FDCWD</home>`.
pub(crate) fn descriptor(argument: &[u8]) -> Option<Descriptor<'_>> {
    let (fd, rest) = match argument.strip_prefix(b"AT_FDCWD") {
        Some(rest) => (AT_FDCWD, rest),
        None => {
            let (fd, rest) = text::number(argument)?;
            (i32::try_from(fd).ok()?, rest)
        }
    };
    match rest.first() {
        Some(b'<') => {
            let end = text::tag_end(rest)?;
            Some((fd, Some(&rest[1..end - 1])))
        }
        _ => Some((fd, None)),
    }
}

/// Descriptor of argument 0, from the text behind the opening parenthesis of a call whose end is not there yet.
pub(crate) fn first_descriptor(body: &[u8]) -> Option<i32> {
    descriptor(body).and_then(|(fd, _)| shown(fd))
}

impl System {
    /// The open file behind a descriptor argument. A tag is the kernel's word and wins over what was rebuilt.
    pub(crate) fn file(
        &mut self,
        context: &Context<'_>,
        (fd, tag): Descriptor<'_>,
        held: Option<Rc<OpenFile>>,
    ) -> Option<Rc<OpenFile>> {
        let known = held.or_else(|| self.threads.get(context.thread).fds.borrow().get(fd).cloned());
        let bad = context.call.returned.errno == Some(b"EBADF");
        match (known, tag) {
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
            (None, None) if (0..=2).contains(&fd) && !bad => {
                const NAMES: [&[u8]; 3] = [b"<stdin>", b"<stdout>", b"<stderr>"];
                let object = self.objects.intern(NAMES[usize::try_from(fd).expect("0, 1 or 2")]);
                let file = OpenFile::new(Some(object), None, false);
                self.set_fd(context.thread, fd, Rc::clone(&file), false);
                Some(file)
            }
            (None, None) => None,
        }
    }

    /// Bring an open file in line with its tag.
    fn agree(&mut self, file: &OpenFile, tag: &[u8]) {
        let known = file.object.get();
        if known.is_some_and(|object| self.objects.name(object) == tag) {
            return;
        }
        let object = self.intern_tag(tag);
        if known == Some(object) {
            return;
        }
        let renamed = known.is_some() && self.renamed.get(&object).copied() == known;
        file.object.set(Some(object));
        if !renamed {
            // The number was given to another file without the log saying so: its position is not known.
            file.position.set(None);
        }
    }

    pub(crate) fn set_fd(&mut self, thread: usize, fd: i32, file: Rc<OpenFile>, close_on_exec: bool) {
        self.threads.get(thread).fds.borrow_mut().set(fd, file, close_on_exec);
    }

    /// The object of a tag, `/dev/null<char 1:3>` and `/tmp/x (deleted)` included.
    pub(crate) fn intern_tag(&mut self, tag: &[u8]) -> ObjectId {
        let plain = match memchr::memchr(b'<', tag) {
            Some(nested) if tag.first() == Some(&b'/') => &tag[..nested],
            _ => tag,
        };
        let plain = plain.strip_suffix(b" (deleted)").unwrap_or(plain);
        self.objects.intern(&text::unescape(plain))
    }

    /// The object of a path argument, seen from a directory argument or the working directory.
    pub(crate) fn resolve(&mut self, context: &Context<'_>, base: Option<Descriptor<'_>>, path: &[u8]) -> ObjectId {
        let thread = self.threads.get(context.thread);
        if let Some((AT_FDCWD, Some(tag))) = base {
            let cwd = text::unescape(tag);
            if thread.cwd.borrow().as_deref() != Some(cwd.as_ref()) {
                *thread.cwd.borrow_mut() = Some(cwd.into_owned());
            }
        }
        if path.starts_with(b"/") {
            return self.objects.intern(&paths::normal(Cow::Borrowed(path)));
        }
        let directory: Option<Vec<u8>> = match base {
            None | Some((AT_FDCWD, _)) => thread.cwd.borrow().clone(),
            Some((_, Some(tag))) => Some(text::unescape(tag).into_owned()),
            Some((fd, None)) => {
                let object = thread.fds.borrow().get(fd).and_then(|file| file.object.get());
                object.map(|object| self.objects.name(object).to_vec())
            }
        };
        let full = match directory {
            Some(mut directory) if directory.starts_with(b"/") => {
                directory.push(b'/');
                directory.extend_from_slice(path);
                paths::normal(Cow::Owned(directory))
            }
            _ => Cow::Borrowed(path),
        };
        self.objects.intern(&full)
    }
}
