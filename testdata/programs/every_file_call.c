/* Every call that works on files, in every form, and what each did. Usage:
 *
 *   every_file_call NOTES FOLDER SHARED INPUT POSITION
 *
 * Works below FOLDER and below SHARED (another file system), and reads standard input, which is the file INPUT at POSITION. First the main
 * thread does everything, then four threads at once, then three forked children at once, of which the second runs this program again.
 *
 * Each call is noted in NOTES: thread, call, path, descriptor, offset, bytes asked for, result, error, second path, second offset, parted by
 * tabs; `-` stands for none, %XX for a byte that is not plain. What is noted comes from this program's own books: where a transfer begins
 * is what it counted, what a descriptor stands for is what it opened. A positioned call begins where it says, also on what has no place. A
 * result that differs from what is known beforehand ends the program with status 3.
 *
 * Calls are noted, all of them, from one getpriority(99, 0) of a thread to the next one, and exec always; what lies between such
 * windows (threads, NOTES, the C library's own calls) is not.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NONE (-1000000)   /* of facts: there is none */
#define RESULT (-1000001) /* as descriptor: what the call returned */
#define ANY (-1000002)    /* as result: whatever it is */
#define SUCCESS (-1000003)
#define CLOSED 999 /* a descriptor that nobody opens */

/* What should stand in the recording, beside result and error. */
struct facts {
    const char *path;
    int fd;
    long long offset, asked;
    const char *to_path;
    long long to_offset;
};

/* An open file: what its descriptors share. */
struct file {
    int fd;
    const char *path;
    long long position, size;
    int append;
};

static const char *notes_file, *program;
static struct file common; /* which the threads write at once */

static __thread int tid, pid, number, alone;
static __thread const char *folder, *directory; /* where its files are, and the working directory */
static __thread char *notes, *texts;
static __thread size_t notes_used, texts_used;
static char bytes[1 << 16]; /* what is in it is of no matter, so all threads use it; not on a stack: a read may ask for 2 GiB */

#define NOTES_SIZE (8 << 20)
#define TEXTS_SIZE (1 << 20)

/* Text that stays. malloc would call the kernel. */
static const char *text(const char *format, ...) {
    va_list arguments;
    char *start = texts + texts_used;
    va_start(arguments, format);
    texts_used += vsnprintf(start, TEXTS_SIZE - texts_used, format, arguments) + 1;
    va_end(arguments);
    if (texts_used >= TEXTS_SIZE) exit(4);
    return start;
}

/* A path in this thread's folder. */
static const char *in(const char *name) { return text("%s/%s", folder, name); }

/* The same, as it is seen from the working directory, which is above the folder. */
static const char *from_here(const char *path) { return path + strlen(directory) + 1; }

static void put(char byte) {
    if (notes_used >= NOTES_SIZE) exit(4);
    notes[notes_used++] = byte;
}

static void put_text(const char *text) {
    if (!text) text = "-";
    for (; *text; text++) put(*text);
    put('\t');
}

static void put_path(const char *path) {
    if (!path) {
        put_text(NULL);
        return;
    }
    for (; *path; path++) {
        unsigned char byte = *path;
        if (byte > ' ' && byte < 0x7f && byte != '%') {
            put(byte);
        } else {
            put('%');
            put("0123456789abcdef"[byte >> 4]);
            put("0123456789abcdef"[byte & 15]);
        }
    }
    put('\t');
}

static void put_number(long long value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", value);
    put_text(value == NONE ? NULL : digits);
}

static long note(const char *call, long long wanted, long result, int error, const struct facts *facts) {
    int bad = wanted == ANY ? 0 : wanted == SUCCESS ? result < 0 : wanted < 0 ? result >= 0 || error != -wanted : result != wanted;
    if (bad) {
        const char *name = result < 0 ? strerrorname_np(error) : "no error";
        fprintf(stderr, "%s(%s): %ld (%s) instead of %lld\n", call, facts->path ? facts->path : "", result, name, wanted);
        _exit(3);
    }
    put_number(tid);
    put_text(call);
    put_path(facts->path);
    put_number(facts->fd == RESULT ? (result < 0 ? NONE : result) : facts->fd);
    put_number(facts->offset);
    put_number(facts->asked);
    put_number(result < 0 ? NONE : result);
    put_text(result < 0 ? strerrorname_np(error) : NULL);
    put_path(facts->to_path);
    put_number(facts->to_offset);
    notes[notes_used - 1] = '\n';
    return result;
}

#define NOTHING (&(struct facts){NULL, NONE, NONE, NONE, NULL, NONE})
#define MOVES(path_, fd_, offset_, asked_) (&(struct facts){path_, fd_, offset_, asked_, NULL, NONE})
#define NAMES(path_) (&(struct facts){path_, NONE, NONE, NONE, NULL, NONE})
#define OPENS(path_) (&(struct facts){path_, RESULT, NONE, NONE, NULL, NONE})
#define WORKS(path_, fd_) (&(struct facts){path_, fd_, NONE, NONE, NULL, NONE})

/* Arguments as the kernel takes them: registers. */
#define R0(n) syscall(n)
#define R1(n, a) syscall(n, (long)(a))
#define R2(n, a, b) syscall(n, (long)(a), (long)(b))
#define R3(n, a, b, c) syscall(n, (long)(a), (long)(b), (long)(c))
#define R4(n, a, b, c, d) syscall(n, (long)(a), (long)(b), (long)(c), (long)(d))
#define R5(n, a, b, c, d, e) syscall(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define R6(n, a, b, c, d, e, f) syscall(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define PICK(n, a, b, c, d, e, f, name, ...) name
#define RAW(name, ...) PICK(name, ##__VA_ARGS__, R6, R5, R4, R3, R2, R1, R0)(SYS_##name, ##__VA_ARGS__)

/* Call, and note: the result that is known beforehand, what should be recorded, the arguments. */
#define DO(name, wanted, facts, ...) \
    ({ \
        long result_ = RAW(name, ##__VA_ARGS__); \
        note(#name, wanted, result_, errno, facts); \
    })

/* The next calls are noted, or are not. */
static void window(void) { syscall(SYS_getpriority, 99, 0); }

static void begin(const char *name, int numbered) {
    tid = syscall(SYS_gettid);
    pid = getpid();
    number = numbered;
    notes = malloc(NOTES_SIZE);
    texts = malloc(TEXTS_SIZE);
    if (!notes || !texts) exit(4);
    notes_used = texts_used = 0;
    folder = name;
}

/* One write, so that those of others do not come in between. */
static void end(void) {
    int fd = open(notes_file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(fd, notes, notes_used) != (ssize_t)notes_used) exit(4);
    close(fd);
    notes_used = 0;
}

static long long least(long long a, long long b) { return a < b ? a : b; }
static long long most(long long a, long long b) { return a > b ? a : b; }

/* How much a read at a place gives. */
static long long left(struct file *file, long long at, long long asked) { return most(0, least(asked, file->size - at)); }

static void grow(struct file *file, long long end) { file->size = most(file->size, end); }

static struct file open_file(const char *path, int flags, long long size) {
    struct file file = {.path = path, .size = size, .append = flags & O_APPEND};
    file.fd = DO(openat, SUCCESS, OPENS(path), AT_FDCWD, path, flags, 0600);
    return file;
}

static void close_file(struct file *file) { DO(close, 0, WORKS(file->path, file->fd), file->fd); }

static void read_some(struct file *file, long long asked) {
    long long got = left(file, file->position, asked);
    DO(read, got, MOVES(file->path, file->fd, file->position, asked), file->fd, bytes, asked);
    file->position += got;
}

static void write_some(struct file *file, long long asked) {
    if (file->append) file->position = file->size;
    DO(write, asked, MOVES(file->path, file->fd, file->position, asked), file->fd, bytes, asked);
    file->position += asked;
    grow(file, file->position);
}

/* A new file with bytes, open for both. */
static struct file new_file(const char *path, long long size) {
    struct file file = open_file(path, O_RDWR | O_CREAT | O_TRUNC, 0);
    if (size) write_some(&file, size);
    DO(lseek, 0, MOVES(path, file.fd, 0, NONE), file.fd, 0, SEEK_SET);
    file.position = 0;
    return file;
}

static const char *name_of(const char *format, int fd) {
    struct stat status;
    if (RAW(fstat, fd, &status)) exit(4);
    return text(format, status.st_ino);
}

/* A pipe, and its name in the recording. The kernel tells the number when it is there, so the second call comes first into the notes. */
static const char *new_pipe(int *ends) {
    long result = RAW(pipe2, ends, O_CLOEXEC);
    const char *name = name_of("pipe:[%lu]", ends[0]);
    note("pipe2", 0, result, 0, WORKS(name, ends[0]));
    note("fstat", 0, 0, 0, WORKS(name, ends[0]));
    return name;
}

static void remove_file(const char *path) { DO(unlink, 0, NAMES(path), path); }

/* Ways to open */

static void opens(void) {
    const char *base = strrchr(folder, '/') + 1;
    const char *plain = in("plain"), *missing = in("missing"), *link = in("link"), *made = in("made");
    struct file file = new_file(plain, 1000), again;
    struct open_how how = {.flags = O_RDONLY};
    int fd, here;

    close_file(&file);
    fd = DO(open, SUCCESS, OPENS(plain), plain, O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    fd = DO(open, SUCCESS, OPENS(plain), from_here(plain), O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    fd = DO(openat, SUCCESS, OPENS(plain), AT_FDCWD, from_here(plain), O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    fd = DO(openat, SUCCESS, OPENS(plain), AT_FDCWD, text("%s//./../%s///plain", folder, base), O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    here = DO(openat, SUCCESS, OPENS(folder), AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
    fd = DO(openat, SUCCESS, OPENS(plain), here, "plain", O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    fd = DO(openat, SUCCESS, OPENS(plain), here, text("..//%s/././plain", base), O_RDONLY);
    DO(close, 0, WORKS(plain, fd), fd);
    DO(openat, -ENOENT, OPENS(missing), here, "missing", O_RDONLY);
    DO(openat, -ENOENT, OPENS(missing), AT_FDCWD, missing, O_RDWR);
    DO(open, -ENOENT, OPENS(missing), from_here(missing), O_RDWR);
    DO(openat, -ENOENT, OPENS(text("%s/missing/below", folder)), here, "./missing//below", O_RDWR);
    DO(openat, -EISDIR, OPENS(folder), AT_FDCWD, folder, O_WRONLY);
    DO(openat, -ENOTDIR, OPENS(plain), AT_FDCWD, plain, O_RDONLY | O_DIRECTORY);
    DO(openat, -ENOTDIR, OPENS(text("%s/below", plain)), AT_FDCWD, text("%s/below", plain), O_RDONLY);
    DO(openat, -EEXIST, OPENS(plain), AT_FDCWD, plain, O_RDWR | O_CREAT | O_EXCL, 0600);
    DO(openat, -EFAULT, OPENS(NULL), AT_FDCWD, 1, O_RDONLY);
    DO(openat, -EBADF, OPENS("plain"), CLOSED, "plain", O_RDONLY);
    DO(openat, -ENAMETOOLONG, OPENS(in(text("%0300d", 1))), AT_FDCWD, in(text("%0300d", 1)), O_RDONLY);

    DO(symlink, 0, NAMES(link), "plain", link);
    DO(openat, -ELOOP, OPENS(link), AT_FDCWD, link, O_RDONLY | O_NOFOLLOW);
    fd = DO(openat, SUCCESS, OPENS(plain), AT_FDCWD, link, O_RDONLY);
    again = (struct file){.fd = fd, .path = plain, .size = 1000};
    read_some(&again, 10);
    close_file(&again);
    fd = DO(openat, SUCCESS, OPENS(link), AT_FDCWD, link, O_PATH | O_NOFOLLOW);
    DO(close, 0, WORKS(link, fd), fd);

    fd = DO(openat2, SUCCESS, OPENS(plain), AT_FDCWD, plain, &how, sizeof how);
    DO(close, 0, WORKS(plain, fd), fd);
    fd = DO(openat2, SUCCESS, OPENS(plain), here, "plain", &how, sizeof how);
    DO(close, 0, WORKS(plain, fd), fd);
    how.resolve = RESOLVE_NO_SYMLINKS;
    DO(openat2, -ELOOP, OPENS(link), here, "link", &how, sizeof how);
    fd = DO(creat, SUCCESS, OPENS(made), made, 0600);
    file = (struct file){.fd = fd, .path = made};
    write_some(&file, 33);
    write_some(&file, 34);
    close_file(&file);

    file = open_file(made, O_WRONLY | O_APPEND, 67);
    write_some(&file, 100);
    write_some(&file, 1);
    DO(lseek, 5, MOVES(made, file.fd, 5, NONE), file.fd, 5, SEEK_SET);
    write_some(&file, 2);
    close_file(&file);
    file = open_file(made, O_RDWR | O_TRUNC, 0);
    read_some(&file, 10);
    write_some(&file, 10);
    close_file(&file);

    DO(close, -EBADF, WORKS(NULL, CLOSED), CLOSED);
    DO(close, -EBADF, NOTHING, -1);
    DO(close, 0, WORKS(folder, here), here);
    remove_file(link);
    remove_file(made);
    remove_file(plain);
}

/* A file that never had a name of its own. */
static void unnamed(void) {
    struct stat status;
    int fd = RAW(openat, AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) {
        note("openat", ANY, fd, errno, OPENS(folder));
        return;
    }
    int got = RAW(fstat, fd, &status);
    /* The kernel names it so (d_mark_tmpfile). */
    struct file file = {.fd = fd, .path = text("%s/#%lu", folder, status.st_ino)};
    note("openat", SUCCESS, fd, 0, OPENS(file.path));
    note("fstat", 0, got, 0, WORKS(file.path, fd));
    write_some(&file, 50);
    close_file(&file);
}

/* Ways to move bytes */

static long long parts_of(struct iovec *parts, int count, int size) {
    for (int i = 0; i < count; i++) parts[i] = (struct iovec){bytes + i * size, size};
    return (long long)count * size;
}

static void reads(void) {
    const char *path = in("data");
    struct file file = new_file(path, 10000);
    struct iovec parts[200];
    long long asked;

    read_some(&file, 100);
    read_some(&file, 1);
    DO(read, 0, MOVES(path, file.fd, file.position, 0), file.fd, bytes, 0);
    DO(pread64, 50, MOVES(path, file.fd, 9950, 100), file.fd, bytes, 100, 9950);
    DO(pread64, 100, MOVES(path, file.fd, 0, 100), file.fd, bytes, 100, 0);
    DO(pread64, 0, MOVES(path, file.fd, 20000, 7), file.fd, bytes, 7, 20000);
    DO(pread64, -EINVAL, MOVES(path, file.fd, NONE, 7), file.fd, bytes, 7, -5);
    asked = parts_of(parts, 3, 11);
    DO(readv, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 3);
    file.position += asked;
    asked = parts_of(parts, 10, 20);
    DO(readv, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 10);
    file.position += asked;
    asked = parts_of(parts, 200, 2);
    DO(readv, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 200);
    file.position += asked;
    DO(readv, 0, MOVES(path, file.fd, file.position, 0), file.fd, parts, 0);
    DO(readv, -EINVAL, MOVES(path, file.fd, file.position, NONE), file.fd, parts, -1);
    asked = parts_of(parts, 2, 17);
    DO(preadv, asked, MOVES(path, file.fd, 4000, asked), file.fd, parts, 2, 4000, 0);
    DO(preadv2, asked, MOVES(path, file.fd, 5000, asked), file.fd, parts, 2, 5000, 0, 0);
    DO(preadv2, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 2, -1, -1, 0);
    file.position += asked;
    read_some(&file, 3);
    DO(read, -EFAULT, MOVES(path, file.fd, file.position, 10), file.fd, 1, 10);
    DO(read, -EBADF, MOVES(NULL, CLOSED, NONE, 10), CLOSED, bytes, 10);
    DO(read, -EBADF, MOVES(NULL, NONE, NONE, 10), -1, bytes, 10);
    DO(pread64, -EBADF, MOVES(NULL, CLOSED, NONE, 10), CLOSED, bytes, 10, 77);
    DO(lseek, 9990, MOVES(path, file.fd, 9990, NONE), file.fd, -10, SEEK_END);
    file.position = 9990;
    read_some(&file, 1LL << 31);
    read_some(&file, 100);
    read_some(&file, 100);
    close_file(&file);
    remove_file(path);
}

static void writes(void) {
    const char *path = in("data");
    struct file file = new_file(path, 0), reader;
    struct iovec parts[200];
    long long asked;

    write_some(&file, 5000);
    write_some(&file, 0);
    DO(pwrite64, 10, MOVES(path, file.fd, 100, 10), file.fd, bytes, 10, 100);
    DO(pwrite64, 10, MOVES(path, file.fd, 5LL << 30, 10), file.fd, bytes, 10, 5LL << 30);
    DO(pread64, 10, MOVES(path, file.fd, 5LL << 30, 20), file.fd, bytes, 20, 5LL << 30);
    asked = parts_of(parts, 4, 25);
    DO(writev, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 4);
    file.position += asked;
    asked = parts_of(parts, 12, 10);
    DO(writev, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 12);
    file.position += asked;
    DO(pwritev, asked, MOVES(path, file.fd, 3000, asked), file.fd, parts, 12, 3000, 0);
    DO(pwritev2, asked, MOVES(path, file.fd, 3500, asked), file.fd, parts, 12, 3500, 0, 0);
    DO(pwritev2, asked, MOVES(path, file.fd, file.position, asked), file.fd, parts, 12, -1, -1, 0);
    file.position += asked;
    DO(write, -EFAULT, MOVES(path, file.fd, file.position, 10), file.fd, 1, 10);
    DO(write, -EBADF, MOVES(NULL, CLOSED, NONE, 10), CLOSED, bytes, 10);
    write_some(&file, 8);
    reader = open_file(path, O_RDONLY, file.size);
    DO(write, -EBADF, MOVES(path, reader.fd, 0, 10), reader.fd, bytes, 10);
    close_file(&reader);
    file.size = (5LL << 30) + 10;
    DO(fcntl, O_RDWR | 0100000, WORKS(path, file.fd), file.fd, F_GETFL);
    DO(fcntl, 0, WORKS(path, file.fd), file.fd, F_SETFL, O_APPEND);
    file.append = 1;
    write_some(&file, 9);
    asked = parts_of(parts, 2, 6);
    DO(pwritev2, asked, MOVES(path, file.fd, file.size, asked), file.fd, parts, 2, -1, -1, 0);
    file.size = file.position = file.size + asked;
    DO(fcntl, 0, WORKS(path, file.fd), file.fd, F_SETFL, 0);
    file.append = 0;
    write_some(&file, 4);
    close_file(&file);
    remove_file(path);
}

static void seeks(void) {
    const char *path = in("data");
    struct file file = new_file(path, 1000);
    int ends[2];

    DO(lseek, 300, MOVES(path, file.fd, 300, NONE), file.fd, 300, SEEK_SET);
    file.position = 300;
    read_some(&file, 50);
    DO(lseek, 340, MOVES(path, file.fd, 340, NONE), file.fd, -10, SEEK_CUR);
    file.position = 340;
    read_some(&file, 1);
    DO(lseek, 341, MOVES(path, file.fd, 341, NONE), file.fd, 0, SEEK_CUR);
    DO(lseek, 2000, MOVES(path, file.fd, 2000, NONE), file.fd, 1000, SEEK_END);
    file.position = 2000;
    read_some(&file, 5);
    write_some(&file, 5);
    DO(lseek, -EINVAL, WORKS(path, file.fd), file.fd, -5000, SEEK_CUR);
    DO(lseek, -EINVAL, WORKS(path, file.fd), file.fd, 0, 77);
    DO(lseek, -EBADF, WORKS(NULL, CLOSED), CLOSED, 0, SEEK_SET);
    DO(lseek, 0, MOVES(path, file.fd, 0, NONE), file.fd, 0, SEEK_DATA);
    file.position = 0;
    read_some(&file, 6);
    close_file(&file);
    remove_file(path);
    const char *name = new_pipe(ends);
    DO(lseek, -ESPIPE, WORKS(name, ends[1]), ends[1], 0, SEEK_SET);
    DO(close, 0, WORKS(name, ends[0]), ends[0]);
    DO(close, 0, WORKS(name, ends[1]), ends[1]);
}

/* Calls that ask about a file */

static void asks(void) {
    const char *path = in("asked"), *link = in("asked link"), *missing = in("missing");
    const char *odd = text("%s//../%s/./asked", folder, strrchr(folder, '/') + 1);
    struct file file = new_file(path, 10), here = {.path = folder};
    struct stat status;
    struct statx more;
    struct statfs system;

    DO(symlink, 0, NAMES(link), path, link);
    here.fd = DO(openat, SUCCESS, OPENS(folder), AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
    DO(stat, 0, NAMES(path), path, &status);
    DO(stat, 0, NAMES(path), odd, &status);
    DO(stat, 0, NAMES(path), from_here(path), &status);
    DO(stat, 0, NAMES(link), link, &status);
    DO(stat, -ENOENT, NAMES(missing), missing, &status);
    DO(lstat, 0, NAMES(link), link, &status);
    DO(fstat, 0, WORKS(path, file.fd), file.fd, &status);
    DO(fstat, -EBADF, WORKS(NULL, CLOSED), CLOSED, &status);
    DO(newfstatat, 0, NAMES(path), AT_FDCWD, path, &status, 0);
    DO(newfstatat, 0, NAMES(path), here.fd, "asked", &status, AT_SYMLINK_NOFOLLOW);
    DO(newfstatat, 0, WORKS(path, file.fd), file.fd, "", &status, AT_EMPTY_PATH);
    DO(newfstatat, -ENOENT, NAMES(missing), here.fd, "missing", &status, 0);
    DO(statx, 0, NAMES(path), AT_FDCWD, from_here(path), 0, STATX_BASIC_STATS, &more);
    DO(statx, 0, NAMES(path), here.fd, "./asked", 0, STATX_BASIC_STATS, &more);
    DO(statx, 0, WORKS(path, file.fd), file.fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more);
    DO(access, 0, NAMES(path), path, R_OK);
    DO(access, -ENOENT, NAMES(missing), missing, F_OK);
    DO(faccessat, 0, NAMES(path), here.fd, "asked", R_OK);
    DO(faccessat2, 0, NAMES(path), here.fd, "asked", R_OK, AT_EACCESS);
    DO(readlink, strlen(path), NAMES(link), link, bytes, sizeof bytes);
    DO(readlink, -EINVAL, NAMES(path), path, bytes, sizeof bytes);
    DO(readlinkat, strlen(path), NAMES(link), here.fd, "asked link", bytes, sizeof bytes);
    DO(statfs, 0, NAMES(path), path, &system);
    DO(fstatfs, 0, WORKS(path, file.fd), file.fd, &system);
    DO(getdents64, SUCCESS, WORKS(folder, here.fd), here.fd, bytes, sizeof bytes);
    DO(getdents64, 0, WORKS(folder, here.fd), here.fd, bytes, sizeof bytes);
    DO(getdents64, -ENOTDIR, WORKS(path, file.fd), file.fd, bytes, sizeof bytes);
    DO(lseek, 0, MOVES(folder, here.fd, 0, NONE), here.fd, 0, SEEK_SET);
    DO(read, -EISDIR, MOVES(folder, here.fd, NONE, 10), here.fd, bytes, 10);
    close_file(&here);
    close_file(&file);
    remove_file(link);
    remove_file(path);
}

/* Directories, and names that start from them */

static void directories(void) {
    const char *made = in("made"), *below = in("made/below"), *file_path = in("made/file"), *moved = in("moved");
    struct file here = {.path = folder}, file;

    DO(mkdir, 0, NAMES(made), made, 0700);
    DO(mkdir, -EEXIST, NAMES(made), made, 0700);
    here.fd = DO(openat, SUCCESS, OPENS(folder), AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
    DO(mkdirat, 0, NAMES(below), here.fd, "made/below", 0700);
    DO(rmdir, -ENOTEMPTY, NAMES(made), made);
    file = new_file(file_path, 100);
    read_some(&file, 10);
    DO(rename, 0, NAMES(made), made, moved);
    file.path = in("moved/file");
    read_some(&file, 10);
    DO(fstat, 0, WORKS(file.path, file.fd), file.fd, &(struct stat){0});
    close_file(&file);
    DO(unlinkat, 0, NAMES(file.path), here.fd, "moved/file", 0);
    DO(unlinkat, -EISDIR, NAMES(in("moved/below")), here.fd, "moved/below", 0);
    DO(unlinkat, 0, NAMES(in("moved/below")), here.fd, "moved/below", AT_REMOVEDIR);
    DO(rmdir, 0, NAMES(moved), moved);
    DO(rmdir, -ENOENT, NAMES(moved), moved);
    close_file(&here);
}

static void working_directory(void) {
    const char *one = in("one"), *two = in("one/two"), *path = in("one/two/file");
    struct file back = {.path = directory}, file, below = {.path = one};

    back.fd = DO(open, SUCCESS, OPENS(directory), directory, O_RDONLY);
    DO(mkdir, 0, NAMES(one), one, 0700);
    DO(chdir, 0, NAMES(one), one);
    DO(getcwd, strlen(one) + 1, NOTHING, bytes, sizeof bytes);
    DO(mkdir, 0, NAMES(two), "two", 0700);
    DO(chdir, 0, NAMES(two), "./two/.");
    file.fd = DO(creat, SUCCESS, OPENS(path), "file", 0600);
    file = (struct file){.fd = file.fd, .path = path};
    write_some(&file, 12);
    close_file(&file);
    DO(stat, 0, NAMES(one), "..", &(struct stat){0});
    DO(stat, 0, NAMES(two), ".", &(struct stat){0});
    DO(access, 0, NAMES(path), "../two/file", R_OK);
    DO(chdir, -ENOENT, NAMES(in("one/two/missing")), "missing");
    DO(chdir, -ENOTDIR, NAMES(path), "file");
    below.fd = DO(openat, SUCCESS, OPENS(one), AT_FDCWD, "..", O_PATH | O_DIRECTORY);
    DO(fchdir, 0, WORKS(one, below.fd), below.fd);
    close_file(&below);
    DO(unlink, 0, NAMES(path), "two/file");
    DO(fchdir, -EBADF, WORKS(NULL, CLOSED), CLOSED);
    DO(rmdir, 0, NAMES(two), "two");
    DO(fchdir, 0, WORKS(directory, back.fd), back.fd);
    DO(access, -ENOENT, NAMES(two), from_here(two), F_OK);
    close_file(&back);
    DO(rmdir, 0, NAMES(one), from_here(one));
}

static void names(void) {
    const char *a = in("a"), *b = in("b"), *c = in("c"), *d = in("d");
    struct file file = new_file(a, 1000), other, here = {.path = folder};

    here.fd = DO(open, SUCCESS, OPENS(folder), folder, O_PATH);
    read_some(&file, 10);
    DO(rename, 0, NAMES(a), a, b);
    file.path = b;
    read_some(&file, 20);
    DO(rename, -ENOENT, NAMES(a), a, c);
    read_some(&file, 1);
    DO(renameat, 0, NAMES(b), here.fd, "b", AT_FDCWD, c);
    file.path = c;
    read_some(&file, 30);
    other = new_file(d, 500);
    DO(renameat2, -EEXIST, NAMES(c), here.fd, "c", here.fd, "d", RENAME_NOREPLACE);
    DO(renameat2, 0, NAMES(c), here.fd, "c", here.fd, "d", RENAME_EXCHANGE);
    file.path = d;
    other.path = c;
    read_some(&file, 40);
    read_some(&other, 50);
    DO(link, 0, NAMES(c), c, a);
    DO(linkat, 0, NAMES(d), here.fd, "d", here.fd, "b", 0);
    DO(link, -EEXIST, NAMES(c), c, a);
    read_some(&file, 2);
    DO(symlinkat, 0, NAMES(in("e")), "nowhere", here.fd, "e");
    DO(symlink, -EEXIST, NAMES(in("e")), "nowhere", in("e"));
    remove_file(in("e"));
    remove_file(c);
    read_some(&other, 60);
    write_some(&other, 600);
    DO(fstat, 0, WORKS(c, other.fd), other.fd, &(struct stat){0});
    close_file(&other);
    /* Another file takes a name whose file is still open. */
    remove_file(d);
    other = new_file(d, 5);
    read_some(&file, 3);
    read_some(&other, 4);
    close_file(&other);
    close_file(&file);
    remove_file(a);
    remove_file(b);
    remove_file(d);
    DO(unlink, -ENOENT, NAMES(d), d);
    close_file(&here);
}

/* Calls that change a file in other ways than by bytes */

static void attributes(void) {
    const char *path = in("attributes"), *link = in("a link");
    struct file file = new_file(path, 1000), here = {.path = folder};
    struct timespec times[2] = {{1000000000, 5}, {1000000001, 6}};

    here.fd = DO(open, SUCCESS, OPENS(folder), folder, O_RDONLY | O_DIRECTORY);
    DO(symlink, 0, NAMES(link), "attributes", link);
    DO(chmod, 0, NAMES(path), path, 0640);
    DO(fchmod, 0, WORKS(path, file.fd), file.fd, 0600);
    DO(fchmodat, 0, NAMES(path), here.fd, "attributes", 0644);
    DO(chown, 0, NAMES(path), path, -1, -1);
    DO(lchown, 0, NAMES(link), link, -1, -1);
    DO(fchown, 0, WORKS(path, file.fd), file.fd, -1, -1);
    DO(fchownat, 0, NAMES(path), here.fd, "attributes", -1, -1, 0);
    DO(fchownat, 0, WORKS(path, file.fd), file.fd, "", -1, -1, AT_EMPTY_PATH);
    DO(utimensat, 0, NAMES(path), AT_FDCWD, path, times, 0);
    DO(utimensat, -ENOENT, NAMES(in("missing")), here.fd, "missing", times, 0);
    DO(truncate, 0, NAMES(path), path, 500);
    file.size = 500;
    read_some(&file, 600);
    DO(ftruncate, 0, WORKS(path, file.fd), file.fd, 700);
    file.size = 700;
    read_some(&file, 100);
    read_some(&file, 200);
    DO(ftruncate, -EINVAL, WORKS(path, file.fd), file.fd, -1);
    DO(fallocate, 0, WORKS(path, file.fd), file.fd, 0, 0, 2000);
    file.size = 2000;
    read_some(&file, 100);
    DO(fsync, 0, WORKS(path, file.fd), file.fd);
    DO(fdatasync, 0, WORKS(path, file.fd), file.fd);
    DO(fdatasync, -EBADF, WORKS(NULL, CLOSED), CLOSED);
    DO(sync_file_range, 0, WORKS(path, file.fd), file.fd, 0, 1000, SYNC_FILE_RANGE_WRITE);
    DO(syncfs, 0, WORKS(folder, here.fd), here.fd);
    DO(fadvise64, 0, WORKS(path, file.fd), file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    DO(readahead, ANY, WORKS(path, file.fd), file.fd, 0, 1000);
    DO(flock, 0, WORKS(path, file.fd), file.fd, LOCK_EX);
    DO(flock, 0, WORKS(path, file.fd), file.fd, LOCK_UN);
    DO(fcntl, 0, WORKS(path, file.fd), file.fd, F_GETLK, &(struct flock){.l_type = F_RDLCK});
    DO(ioctl, 0, WORKS(path, file.fd), file.fd, FIONREAD, bytes);
    DO(ioctl, -ENOTTY, WORKS(path, file.fd), file.fd, TIOCGWINSZ, bytes);
    DO(setxattr, ANY, NAMES(path), path, "user.sysdock", "one", 3, 0);
    DO(lsetxattr, ANY, NAMES(path), path, "user.sysdock", "two", 3, 0);
    DO(fsetxattr, ANY, WORKS(path, file.fd), file.fd, "user.sysdock", "three", 5, 0);
    DO(getxattr, ANY, NAMES(path), path, "user.sysdock", bytes, 100);
    DO(lgetxattr, ANY, NAMES(path), path, "user.missing", bytes, 100);
    DO(fgetxattr, ANY, WORKS(path, file.fd), file.fd, "user.sysdock", bytes, 100);
    DO(listxattr, ANY, NAMES(path), path, bytes, 100);
    DO(llistxattr, ANY, NAMES(link), link, bytes, 100);
    DO(flistxattr, ANY, WORKS(path, file.fd), file.fd, bytes, 100);
    DO(removexattr, ANY, NAMES(path), path, "user.sysdock");
    close_file(&here);
    close_file(&file);
    remove_file(link);
    remove_file(path);
}

/* Descriptors that share an open file */

static void descriptors(void) {
    const char *path = in("shared");
    struct file file = new_file(path, 1000), second, third;
    int high = 400 + 20 * number;

    second = file;
    second.fd = DO(dup, SUCCESS, OPENS(path), file.fd);
    read_some(&second, 10);
    file.position = second.position;
    read_some(&file, 20);
    third = file;
    third.fd = DO(dup2, high, OPENS(path), file.fd, high);
    read_some(&third, 30);
    DO(dup2, high, OPENS(path), high, high);
    DO(dup3, high + 1, OPENS(path), high, high + 1, O_CLOEXEC);
    DO(dup3, -EINVAL, WORKS(path, high), high, high, 0);
    DO(dup, -EBADF, WORKS(NULL, CLOSED), CLOSED);
    third.fd = high + 1;
    read_some(&third, 40);
    third.fd = DO(fcntl, high + 2, OPENS(path), file.fd, F_DUPFD, high + 2);
    read_some(&third, 50);
    third.fd = DO(fcntl, high + 3, OPENS(path), file.fd, F_DUPFD_CLOEXEC, high + 2);
    read_some(&third, 60);
    DO(fcntl, FD_CLOEXEC, WORKS(path, high + 3), high + 3, F_GETFD);
    DO(fcntl, 0, WORKS(path, high + 3), high + 3, F_SETFD, 0);
    DO(close_range, 0, NOTHING, high, high + 3, 0);
    DO(close_range, -EINVAL, NOTHING, 10, 9, 0);
    DO(read, -EBADF, MOVES(NULL, high, NONE, 1), high, bytes, 1);
    file.position = third.position;
    read_some(&file, 1);
    close_file(&file);
    second.position = file.position;
    read_some(&second, 2);
    /* Another file in the place of this one. */
    int replaced = second.fd;
    third = new_file(in("other"), 10);
    DO(dup2, replaced, OPENS(third.path), third.fd, replaced);
    second = third;
    second.fd = replaced;
    read_some(&second, 5);
    close_file(&second);
    third.position = second.position;
    read_some(&third, 2);
    close_file(&third);
    remove_file(third.path);
    remove_file(path);
}

/* Pipes and sockets */

static void pipes(void) {
    int ends[2];
    const char *name = new_pipe(ends);
    DO(write, 100, MOVES(name, ends[1], NONE, 100), ends[1], bytes, 100);
    DO(ioctl, 0, WORKS(name, ends[0]), ends[0], FIONREAD, bytes);
    DO(read, 60, MOVES(name, ends[0], NONE, 60), ends[0], bytes, 60);
    DO(read, 40, MOVES(name, ends[0], NONE, 60), ends[0], bytes, 60);
    DO(fcntl, 0, WORKS(name, ends[0]), ends[0], F_SETFL, O_NONBLOCK);
    DO(read, -EAGAIN, MOVES(name, ends[0], NONE, 60), ends[0], bytes, 60);
    DO(pread64, -ESPIPE, MOVES(name, ends[0], 0, 60), ends[0], bytes, 60, 0);
    DO(close, 0, WORKS(name, ends[1]), ends[1]);
    DO(read, 0, MOVES(name, ends[0], NONE, 60), ends[0], bytes, 60);
    DO(close, 0, WORKS(name, ends[0]), ends[0]);
}

/* A message with bytes in two parts and, if wanted, room for a descriptor. */
struct message {
    struct msghdr header;
    struct iovec parts[2];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
};

static void prepare(struct message *message, int first, int second, int with_room) {
    memset(message, 0, sizeof *message);
    message->parts[0] = (struct iovec){bytes, first};
    message->parts[1] = (struct iovec){bytes + first, second};
    message->header.msg_iov = message->parts;
    message->header.msg_iovlen = 2;
    if (with_room) {
        message->header.msg_control = message->control.bytes;
        message->header.msg_controllen = sizeof message->control.bytes;
    }
}

static void sockets(void) {
    int ends[2], received;
    struct message message;
    struct file file = new_file(in("passed"), 1000);
    long result = RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, ends);
    const char *first = name_of("socket:[%lu]", ends[0]), *second = name_of("socket:[%lu]", ends[1]);

    note("socketpair", 0, result, 0, WORKS(first, ends[0]));
    note("fstat", 0, 0, 0, WORKS(first, ends[0]));
    note("fstat", 0, 0, 0, WORKS(second, ends[1]));
    DO(sendto, 100, MOVES(first, ends[0], NONE, 100), ends[0], bytes, 100, 0, NULL, 0);
    DO(recvfrom, 70, MOVES(second, ends[1], NONE, 70), ends[1], bytes, 70, 0, NULL, NULL);
    DO(recvfrom, 30, MOVES(second, ends[1], NONE, 70), ends[1], bytes, 70, 0, NULL, NULL);
    DO(recvfrom, -EAGAIN, MOVES(second, ends[1], NONE, 70), ends[1], bytes, 70, MSG_DONTWAIT, NULL, NULL);
    DO(write, 10, MOVES(first, ends[0], NONE, 10), ends[0], bytes, 10);
    DO(read, 10, MOVES(second, ends[1], NONE, 20), ends[1], bytes, 20);
    prepare(&message, 30, 40, 0);
    DO(sendmsg, 70, MOVES(second, ends[1], NONE, 70), ends[1], &message, 0);
    prepare(&message, 50, 50, 0);
    DO(recvmsg, 70, MOVES(first, ends[0], NONE, 100), ends[0], &message, 0);
    DO(shutdown, -EBADF, WORKS(NULL, CLOSED), CLOSED, SHUT_RD);
    DO(getsockopt, 0, WORKS(first, ends[0]), ends[0], SOL_SOCKET, SO_TYPE, bytes, &(socklen_t){4});

    /* A descriptor goes along; the file is shared, its position too. */
    read_some(&file, 5);
    prepare(&message, 1, 1, 1);
    message.control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&message.control.align), &file.fd, sizeof(int));
    DO(sendmsg, 2, MOVES(first, ends[0], NONE, 2), ends[0], &message, 0);
    read_some(&file, 6);
    prepare(&message, 1, 1, 1);
    DO(recvmsg, 2, MOVES(second, ends[1], NONE, 2), ends[1], &message, 0);
    memcpy(&received, CMSG_DATA(&message.control.align), sizeof(int));
    close_file(&file);
    file.fd = received;
    read_some(&file, 7);
    DO(fstat, 0, WORKS(file.path, file.fd), file.fd, &(struct stat){0});
    close_file(&file);
    remove_file(file.path);
    DO(close, 0, WORKS(first, ends[0]), ends[0]);
    DO(sendto, -EPIPE, MOVES(second, ends[1], NONE, 9), ends[1], bytes, 9, MSG_NOSIGNAL, NULL, 0);
    DO(close, 0, WORKS(second, ends[1]), ends[1]);
}

/* Copies from a descriptor to another */

#define COPIES(from_, from_fd, at_, size_, to_, to_at) (&(struct facts){from_, from_fd, at_, size_, to_, to_at})

static void copies(void) {
    struct file from = new_file(in("from"), 10000), to = new_file(in("to"), 0);
    loff_t at, to_at;
    int ends[2], second[2];
    const char *pipe_name, *second_name;

    DO(sendfile, 1000, COPIES(from.path, from.fd, 0, 1000, to.path, 0), to.fd, from.fd, NULL, 1000);
    at = 5000;
    DO(sendfile, 100, COPIES(from.path, from.fd, 5000, 100, to.path, 1000), to.fd, from.fd, &at, 100);
    at = 9990;
    DO(sendfile, 10, COPIES(from.path, from.fd, 9990, 100, to.path, 1100), to.fd, from.fd, &at, 100);
    DO(sendfile, 0, COPIES(from.path, from.fd, 10000, 100, to.path, 1110), to.fd, from.fd, &at, 100);
    DO(sendfile, -EBADF, COPIES(NULL, CLOSED, NONE, 100, to.path, 1110), to.fd, CLOSED, NULL, 100);
    DO(copy_file_range, 500, COPIES(from.path, from.fd, 1000, 500, to.path, 1110), from.fd, NULL, to.fd, NULL, 500, 0);
    at = 20;
    DO(copy_file_range, 50, COPIES(from.path, from.fd, 20, 50, to.path, 1610), from.fd, &at, to.fd, NULL, 50, 0);
    at = 30, to_at = 7000;
    DO(copy_file_range, 60, COPIES(from.path, from.fd, 30, 60, to.path, 7000), from.fd, &at, to.fd, &to_at, 60, 0);
    from.position = 1500, to.position = 1660;
    read_some(&from, 10);
    write_some(&to, 10);
    pipe_name = new_pipe(ends);
    second_name = new_pipe(second);
    DO(splice, 300, COPIES(from.path, from.fd, 1510, 300, pipe_name, NONE), from.fd, NULL, ends[1], NULL, 300, 0);
    DO(tee, 200, COPIES(pipe_name, ends[0], NONE, 200, second_name, NONE), ends[0], second[1], 200, 0);
    DO(splice, 300, COPIES(pipe_name, ends[0], NONE, 400, to.path, 1670), ends[0], NULL, to.fd, NULL, 400, 0);
    at = 6000;
    DO(splice, 40, COPIES(from.path, from.fd, 6000, 40, pipe_name, NONE), from.fd, &at, ends[1], NULL, 40, 0);
    to_at = 3000;
    DO(splice, 40, COPIES(pipe_name, ends[0], NONE, 40, to.path, 3000), ends[0], NULL, to.fd, &to_at, 40, 0);
    struct iovec parts[2];
    long long asked = parts_of(parts, 2, 30);
    DO(vmsplice, asked, MOVES(pipe_name, ends[1], NONE, asked), ends[1], parts, 2, 0);
    DO(read, 60, MOVES(pipe_name, ends[0], NONE, 100), ends[0], bytes, 100);
    from.position = 1810, to.position = 1970;
    read_some(&from, 1);
    write_some(&to, 1);
    for (int i = 0; i < 2; i++) {
        DO(close, 0, WORKS(pipe_name, ends[i]), ends[i]);
        DO(close, 0, WORKS(second_name, second[i]), second[i]);
    }
    close_file(&from);
    close_file(&to);
    remove_file(from.path);
    remove_file(to.path);
}

/* Memory that is a file, and objects that are not */

static void maps(void) {
    struct file file = new_file(in("mapped"), 8192), memory = {.path = "/memfd:memory"};
    long address = DO(mmap, SUCCESS, WORKS(file.path, file.fd), 0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    memset((void *)address, 'y', 8192);
    DO(msync, 0, NOTHING, address, 8192, MS_SYNC);
    DO(munmap, 0, NOTHING, address, 8192);
    address = DO(mmap, SUCCESS, WORKS(file.path, file.fd), 0, 4096, PROT_READ, MAP_PRIVATE, file.fd, 4096);
    DO(munmap, 0, NOTHING, address, 4096);
    DO(mmap, -EBADF, WORKS(NULL, CLOSED), 0, 4096, PROT_READ, MAP_PRIVATE, CLOSED, 0);
    address = DO(mmap, SUCCESS, NOTHING, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    DO(munmap, 0, NOTHING, address, 4096);
    close_file(&file);
    remove_file(file.path);
    memory.fd = DO(memfd_create, SUCCESS, OPENS(memory.path), "memory", 0);
    write_some(&memory, 100);
    write_some(&memory, 100);
    DO(pread64, 10, MOVES(memory.path, memory.fd, 190, 100), memory.fd, bytes, 100, 190);
    close_file(&memory);
}

static void objects(void) {
    struct file event = {.path = "anon_inode:[eventfd]"}, poll = {.path = "anon_inode:[eventpoll]"};
    struct file timer = {.path = "anon_inode:[timerfd]"}, signals = {.path = "anon_inode:[signalfd]"};
    struct file watch = {.path = "anon_inode:inotify"};
    struct itimerspec later = {.it_value = {1000, 0}};
    struct epoll_event wanted = {.events = EPOLLIN};
    unsigned long long set = 1 << (SIGUSR2 - 1), one = 1;

    event.fd = DO(eventfd2, SUCCESS, OPENS(event.path), 0, EFD_NONBLOCK);
    DO(read, -EAGAIN, MOVES(event.path, event.fd, NONE, 8), event.fd, bytes, 8);
    DO(write, 8, MOVES(event.path, event.fd, NONE, 8), event.fd, &one, 8);
    DO(read, 8, MOVES(event.path, event.fd, NONE, 16), event.fd, bytes, 16);
    poll.fd = DO(epoll_create1, SUCCESS, OPENS(poll.path), EPOLL_CLOEXEC);
    DO(epoll_ctl, 0, WORKS(poll.path, poll.fd), poll.fd, EPOLL_CTL_ADD, event.fd, &wanted);
    DO(epoll_wait, 0, WORKS(poll.path, poll.fd), poll.fd, bytes, 1, 0);
    timer.fd = DO(timerfd_create, SUCCESS, OPENS(timer.path), CLOCK_MONOTONIC, TFD_NONBLOCK);
    DO(timerfd_settime, 0, WORKS(timer.path, timer.fd), timer.fd, 0, &later, NULL);
    DO(read, -EAGAIN, MOVES(timer.path, timer.fd, NONE, 8), timer.fd, bytes, 8);
    signals.fd = DO(signalfd4, SUCCESS, OPENS(signals.path), -1, &set, 8, 0);
    watch.fd = DO(inotify_init1, SUCCESS, OPENS(watch.path), 0);
    DO(inotify_add_watch, SUCCESS, WORKS(watch.path, watch.fd), watch.fd, folder, IN_CREATE);
    DO(ioctl, 0, WORKS(watch.path, watch.fd), watch.fd, FIONREAD, bytes);
    close_file(&watch);
    close_file(&signals);
    close_file(&timer);
    close_file(&poll);
    close_file(&event);
}

/* Names that are hard to write down */

static void one_name(const char *path) {
    struct file file = new_file(path, 10);
    DO(stat, 0, NAMES(path), path, &(struct stat){0});
    DO(stat, 0, NAMES(path), from_here(path), &(struct stat){0});
    read_some(&file, 5);
    close_file(&file);
    DO(unlink, 0, NAMES(path), from_here(path));
}

static void odd_names(void) {
    static const char *const odd[] = {
        "two\nlines", "tab\there", "quote\"quote", "apostrophe'", "back\\slash", "less<than", "more>than", "comma, space",
        "(brackets)[square]{curly}", "-dash", "%41", "\xff\xfe\x80", "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac", "half \xc3", "\\x41",
        "\x1b[31mred", "ends with blank ", "...", "pipe:[5]", "is gone (deleted)", "\x7f", "a>b<c\"d, e",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) one_name(in(odd[i]));
    one_name(in(text("%0255d", 1)));
    one_name(in(text("%.*s", 255, text("%0100d\xc3\xa9%0200d", 1, 1))));

    /* 20 directories deep, and six with long names: more than 1,500 bytes. */
    for (int part = 0; part < 2; part++) {
        const char *path = folder, *levels[20];
        int depth = part ? 6 : 20;
        for (int i = 0; i < depth; i++) {
            path = levels[i] = part ? text("%s/%0250d", path, i) : text("%s/%d", path, i);
            DO(mkdir, 0, NAMES(path), path, 0700);
        }
        one_name(text("%s/deep", path));
        for (int i = depth - 1; i >= 0; i--) DO(rmdir, 0, NAMES(levels[i]), levels[i]);
    }
}

/* Files of the kernel */

static void kernel_files(void) {
    struct file status = {.path = text("/proc/%d/status", pid)}, null = {.path = "/dev/null"}, zero = {.path = "/dev/zero"};
    long got;

    status.fd = DO(openat, SUCCESS, OPENS(status.path), AT_FDCWD, "/proc/self/status", O_RDONLY);
    got = DO(read, 100, MOVES(status.path, status.fd, 0, 100), status.fd, bytes, 100);
    status.position = got;
    got = DO(read, SUCCESS, MOVES(status.path, status.fd, status.position, 10000), status.fd, bytes, 10000);
    status.position += got;
    DO(read, 0, MOVES(status.path, status.fd, status.position, 10000), status.fd, bytes, 10000);
    close_file(&status);
    DO(stat, 0, NAMES("/proc/self/status"), "/proc/self/status", &(struct stat){0});
    null.fd = DO(open, SUCCESS, OPENS(null.path), "/dev/null", O_RDWR);
    DO(write, 1000, MOVES(null.path, null.fd, NONE, 1000), null.fd, bytes, 1000);
    DO(read, 0, MOVES(null.path, null.fd, NONE, 1000), null.fd, bytes, 1000);
    close_file(&null);
    zero.fd = DO(openat, SUCCESS, OPENS(zero.path), AT_FDCWD, "/dev/../dev//zero", O_RDONLY);
    DO(read, 5000, MOVES(zero.path, zero.fd, NONE, 5000), zero.fd, bytes, 5000);
    DO(pread64, 50, MOVES(zero.path, zero.fd, 100, 50), zero.fd, bytes, 50, 100);
    close_file(&zero);
}

static void everything(void) {
    window();
    DO(mkdir, 0, NAMES(folder), folder, 0700);
    opens();
    unnamed();
    reads();
    writes();
    seeks();
    asks();
    directories();
    if (alone) working_directory();
    names();
    attributes();
    descriptors();
    pipes();
    sockets();
    copies();
    maps();
    objects();
    odd_names();
    kernel_files();
    DO(rmdir, 0, NAMES(folder), folder);
    window();
}

/* Where it is done */

struct work {
    int number;
    const char *folder;
};

/* In its own part of the file that all threads have open. */
static void share(void) {
    window();
    for (int i = 0; i < 200; i++) {
        long long at = number * 100000 + i * 100;
        DO(pwrite64, 100, MOVES(common.path, common.fd, at, 100), common.fd, bytes, 100, at);
        DO(pread64, 60, MOVES(common.path, common.fd, at + 40, 60), common.fd, bytes, 60, at + 40);
    }
    window();
}

static void *work_as_thread(void *given) {
    struct work *work = given;
    begin(work->folder, work->number);
    directory = ""; /* the root: all threads have one working directory, and their folders are in two places */
    everything();
    share();
    end();
    return NULL;
}

/* Standard input was open before this program was. */
static void read_input(struct file *standard) {
    window();
    DO(fstat, 0, WORKS(standard->path, standard->fd), standard->fd, &(struct stat){0});
    read_some(standard, 10);
    DO(lseek, standard->position, MOVES(standard->path, 0, standard->position, NONE), 0, 0, SEEK_CUR);
    read_some(standard, 20);
    window();
}

static void run_again(struct file *kept, struct file *lost) {
    char words[6][32];
    snprintf(words[0], 32, "%d", kept->fd);
    snprintf(words[1], 32, "%lld", kept->position);
    snprintf(words[2], 32, "%lld", kept->size);
    snprintf(words[3], 32, "%d", lost->fd);
    const char *arguments[] = {program, "--again", notes_file, kept->path, words[0], words[1], words[2], words[3], NULL};
    const char *missing = text("%s/missing", folder);
    DO(execve, -ENOENT, NAMES(missing), missing, arguments, environ);
    note("execve", 0, 0, 0, NAMES(program));
    end();
    syscall(SYS_execve, program, arguments, environ);
    exit(4);
}

/* What another program left to this one: a descriptor that stayed open, and one that was closed by exec. */
static int go_on(char **arguments) {
    struct file kept = {.path = arguments[3], .fd = atoi(arguments[4]), .position = atoll(arguments[5]), .size = atoll(arguments[6])};
    int lost = atoi(arguments[7]);
    notes_file = arguments[2];
    begin("", 0);
    window();
    read_some(&kept, 70);
    DO(read, -EBADF, MOVES(NULL, lost, NONE, 1), lost, bytes, 1);
    close_file(&kept);
    window();
    end();
    return 0;
}

static void work_as_child(struct work *work, struct file *inherited, struct file *lost) {
    char *above = strdup(work->folder);
    *strrchr(above, '/') = 0;
    begin(work->folder, work->number);
    directory = above;
    window();
    DO(chdir, 0, NAMES(above), above);
    window();
    everything();
    window();
    read_some(inherited, 64);
    window();
    if (work->number == 6) run_again(inherited, lost);
    end();
    _exit(0);
}

int main(int count, char **arguments) {
    program = arguments[0];
    if (count == 8 && !strcmp(arguments[1], "--again")) return go_on(arguments);
    if (count != 6) return 2;
    notes_file = arguments[1];
    struct file standard = {.path = arguments[4], .position = atoll(arguments[5]), .size = 1000000};
    struct file inherited[3], lost;
    struct work works[8];
    pthread_t threads[8];
    pid_t children[3];
    int status, failed = 0;

    for (int i = 0; i < 8; i++) {
        char *name = malloc(4096);
        snprintf(name, 4096, "%s/w%d", arguments[i % 2 ? 3 : 2], i);
        works[i] = (struct work){i, name};
    }
    alone = 1;
    begin(works[0].folder, 0);
    note("execve", 0, 0, 0, NAMES(program));
    /* Once on each file system. */
    for (int i = 2; i < 4; i++) {
        directory = arguments[i];
        folder = text("%s/w0", directory);
        window();
        DO(chdir, 0, NAMES(directory), directory);
        window();
        everything();
    }
    read_input(&standard);

    window();
    DO(chdir, 0, NAMES("/"), "/");
    common = new_file(text("%s/common", arguments[2]), 0);
    window();
    for (int i = 1; i < 5; i++) pthread_create(&threads[i], NULL, work_as_thread, &works[i]);
    for (int i = 1; i < 5; i++) pthread_join(threads[i], NULL);

    window();
    for (int i = 0; i < 3; i++) {
        inherited[i] = new_file(text("%s/inherited %d", arguments[2], i), 1000);
        read_some(&inherited[i], 5);
    }
    lost = open_file(standard.path, O_RDONLY | O_CLOEXEC, standard.size);
    window();
    end();
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) work_as_child(&works[5 + i], &inherited[i], &lost);
    }
    for (int i = 0; i < 3; i++) {
        waitpid(children[i], &status, 0);
        failed |= status;
        inherited[i].position += i == 1 ? 64 + 70 : 64;
    }
    window();
    for (int i = 0; i < 3; i++) {
        read_some(&inherited[i], 3);
        close_file(&inherited[i]);
    }
    close_file(&lost);
    close_file(&common);
    read_some(&standard, 30);
    window();
    end();
    return failed ? 3 : 0;
}
