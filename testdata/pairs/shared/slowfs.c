/* slowfs: shows a folder through FUSE with the delays of a network file system. It speaks the kernel's protocol itself, so
 * that nothing has to be installed. Needs root and /dev/fuse. It goes to the background when mounted, and ends at `umount`.
 * Where its standard input is a pipe, it unmounts itself when the writer of the pipe is gone, for whatever reason.
 *
 *   slowfs SOURCE MOUNT_POINT [OPTION=N]...
 *
 *   meta_us=N      each lookup, getattr, setattr, open, create, unlink, statfs and getxattr takes N us
 *   read_us=N      each read takes N us
 *   write_us=N     each write takes N us; a client sends those of one file one after the other
 *   write_mb_s=N   data written arrives at N MB/s, all files together
 *   stall_open=N   the Nth open or create of a regular file takes stall_ms
 *   stall_read=N   the Nth read takes stall_ms
 *   stall_ms=N     how long one stall is
 *   writeback=1    written data stays in the client until close, as NFS does it (close-to-open)
 *   direct=1       no page cache and no read-ahead in the client
 *   no_xattr=1     the mount has no extended attributes and no ACLs (as NFS with `noacl`)
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, MAX_IO = 1 << 20, MAX_NODES = 65536 };

static struct { const char *name; long value; } options[] = {
    {"meta_us", 0}, {"read_us", 0}, {"write_us", 0}, {"write_mb_s", 0}, {"stall_open", 0}, {"stall_read", 0}, {"stall_ms", 0},
    {"writeback", 0}, {"direct", 0}, {"no_xattr", 0}};
enum { META_US, READ_US, WRITE_US, WRITE_MB_S, STALL_OPEN, STALL_READ, STALL_MS, WRITEBACK, DIRECT, NO_XATTR, OPTIONS };

static int device, source;
static char *nodes[MAX_NODES]; /* node id -> path below SOURCE; ids are never given back */
static uint64_t node_count = 2;
static pthread_mutex_t node_lock = PTHREAD_MUTEX_INITIALIZER, link_lock = PTHREAD_MUTEX_INITIALIZER;
static long opens, reads;

static long option(int which) { return options[which].value; }

static void nap(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void stall(long *count, int at) {
    if (__sync_add_and_fetch(count, 1) == option(at)) nap(option(STALL_MS) * 1000);
}

static void reply(uint64_t unique, int error, const void *data, size_t size) {
    struct fuse_out_header head = {sizeof head + (error ? 0 : size), -error, unique};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, size}};
    if (writev(device, parts, error || !size ? 1 : 2) < 0 && errno != ENOENT && errno != ENODEV) perror("slowfs: reply");
}

/* Path below SOURCE of `name` in `parent`. */
static void path_of(uint64_t parent, const char *name, char *path) {
    const char *folder = nodes[parent];
    snprintf(path, PATH_MAX, "%s%s%s", folder, *folder && *name ? "/" : "", name);
    if (!*path) strcpy(path, ".");
}

static uint64_t node_of(const char *path) {
    uint64_t id;
    pthread_mutex_lock(&node_lock);
    for (id = node_count - 1; id > 1 && strcmp(nodes[id], path); id--) continue;
    if (id == 1 && node_count < MAX_NODES) nodes[id = node_count++] = strdup(path);
    pthread_mutex_unlock(&node_lock);
    return id;
}

static int attributes(const char *path, struct fuse_attr *to) {
    struct stat s;
    if (fstatat(source, path, &s, AT_SYMLINK_NOFOLLOW) < 0) return errno;
    *to = (struct fuse_attr){.ino = s.st_ino, .size = s.st_size, .blocks = s.st_blocks, .atime = s.st_atime, .mtime = s.st_mtime,
        .ctime = s.st_ctime, .atimensec = s.st_atim.tv_nsec, .mtimensec = s.st_mtim.tv_nsec, .ctimensec = s.st_ctim.tv_nsec,
        .mode = s.st_mode, .nlink = s.st_nlink, .uid = s.st_uid, .gid = s.st_gid, .blksize = 4096};
    return 0;
}

static int entry(const char *path, struct fuse_entry_out *to) {
    *to = (struct fuse_entry_out){.entry_valid = 1, .attr_valid = 1};
    int error = attributes(path, &to->attr);
    if (!error) to->nodeid = node_of(path);
    return error;
}

static void read_directory(uint64_t unique, const struct fuse_read_in *in, char *out) {
    DIR *dir = (DIR *)(uintptr_t)in->fh;
    size_t used = 0;
    seekdir(dir, in->offset);
    for (struct dirent *found; (found = readdir(dir));) {
        size_t length = strlen(found->d_name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
        if (used + size > in->size) break;
        struct fuse_dirent *to = memset(out + used, 0, size);
        *to = (struct fuse_dirent){found->d_ino, found->d_off, length, found->d_type};
        memcpy(to->name, found->d_name, length);
        used += size;
    }
    reply(unique, 0, out, used);
}

static int set_attributes(const char *path, const struct fuse_setattr_in *in) {
    if (in->valid & FATTR_SIZE) {
        int fd = openat(source, path, O_WRONLY);
        if (fd < 0) return errno;
        int bad = ftruncate(fd, in->size);
        close(fd);
        if (bad) return errno;
    }
    if (in->valid & FATTR_MODE && fchmodat(source, path, in->mode & 07777, 0)) return errno;
    if (in->valid & (FATTR_ATIME | FATTR_MTIME)) {
        struct timespec times[2] = {{in->atime, in->atimensec}, {in->mtime, in->mtimensec}};
        if (!(in->valid & FATTR_ATIME)) times[0].tv_nsec = UTIME_OMIT;
        if (!(in->valid & FATTR_MTIME)) times[1].tv_nsec = UTIME_OMIT;
        if (in->valid & FATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
        if (in->valid & FATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
        if (utimensat(source, path, times, 0)) return errno;
    }
    return 0;
}

/* The client may read what it only writes (to fill pages), and knows itself where to append. */
static int backing_flags(int flags) { return (flags & ~(O_ACCMODE | O_APPEND | O_DIRECT)) | ((flags & O_ACCMODE) ? O_RDWR : O_RDONLY); }

static void answer(const struct fuse_in_header *head, char *in, char *out) {
    uint64_t unique = head->unique;
    char path[PATH_MAX], other[PATH_MAX];
    int error = 0, fd;
    switch (head->opcode) {
    case FUSE_LOOKUP: case FUSE_GETATTR: case FUSE_SETATTR: case FUSE_OPEN: case FUSE_CREATE:
    case FUSE_UNLINK: case FUSE_STATFS: case FUSE_GETXATTR: nap(option(META_US));
    }
    switch (head->opcode) {
    case FUSE_INIT: {
        struct fuse_init_in *init = (void *)in;
        struct fuse_init_out told = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
            .max_readahead = init->max_readahead, .max_background = 64, .congestion_threshold = 64, .max_write = MAX_IO,
            .time_gran = 1, .max_pages = MAX_IO / 4096};
        told.flags = init->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS
            | (option(WRITEBACK) ? FUSE_WRITEBACK_CACHE : 0));
        reply(unique, 0, &told, sizeof told);
        return;
    }
    case FUSE_LOOKUP: case FUSE_MKDIR: {
        const char *name = in + (head->opcode == FUSE_MKDIR ? sizeof(struct fuse_mkdir_in) : 0);
        struct fuse_entry_out found;
        path_of(head->nodeid, name, path);
        if (head->opcode == FUSE_MKDIR && mkdirat(source, path, ((struct fuse_mkdir_in *)in)->mode)) error = errno;
        if (!error) error = entry(path, &found);
        reply(unique, error, &found, sizeof found);
        return;
    }
    case FUSE_GETATTR: case FUSE_SETATTR: {
        struct fuse_attr_out told = {.attr_valid = 1};
        path_of(head->nodeid, "", path);
        if (head->opcode == FUSE_SETATTR) error = set_attributes(path, (void *)in);
        if (!error) error = attributes(path, &told.attr);
        reply(unique, error, &told, sizeof told);
        return;
    }
    case FUSE_OPEN: case FUSE_CREATE: {
        struct { struct fuse_entry_out entry; struct fuse_open_out open; } made = {0};
        int create = head->opcode == FUSE_CREATE;
        path_of(head->nodeid, create ? in + sizeof(struct fuse_create_in) : "", path);
        stall(&opens, STALL_OPEN);
        fd = create ? openat(source, path, backing_flags(((struct fuse_create_in *)in)->flags) | O_CREAT, ((struct fuse_create_in *)in)->mode)
                    : openat(source, path, backing_flags(((struct fuse_open_in *)in)->flags));
        if (fd < 0) error = errno;
        else if (create) error = entry(path, &made.entry);
        made.open.fh = fd;
        made.open.open_flags = option(DIRECT) ? FOPEN_DIRECT_IO : 0;
        reply(unique, error, create ? (void *)&made : (void *)&made.open, create ? sizeof made : sizeof made.open);
        return;
    }
    case FUSE_READ: {
        struct fuse_read_in *ask = (void *)in;
        stall(&reads, STALL_READ);
        nap(option(READ_US));
        ssize_t got = pread(ask->fh, out, ask->size, ask->offset);
        reply(unique, got < 0 ? errno : 0, out, got);
        return;
    }
    case FUSE_WRITE: {
        struct fuse_write_in *ask = (void *)in;
        nap(option(WRITE_US));
        if (option(WRITE_MB_S)) {
            pthread_mutex_lock(&link_lock);
            nap(ask->size / option(WRITE_MB_S));
            pthread_mutex_unlock(&link_lock);
        }
        ssize_t put = pwrite(ask->fh, in + sizeof *ask, ask->size, ask->offset);
        struct fuse_write_out told = {.size = put};
        reply(unique, put < 0 ? errno : 0, &told, sizeof told);
        return;
    }
    case FUSE_FLUSH: case FUSE_FSYNC: break;
    case FUSE_RELEASE: close(((struct fuse_release_in *)in)->fh); break;
    case FUSE_UNLINK: case FUSE_RMDIR:
        path_of(head->nodeid, in, path);
        if (unlinkat(source, path, head->opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0)) error = errno;
        break;
    case FUSE_RENAME: case FUSE_RENAME2: {
        char *from = in + (head->opcode == FUSE_RENAME ? sizeof(struct fuse_rename_in) : sizeof(struct fuse_rename2_in));
        path_of(head->nodeid, from, path);
        path_of(((struct fuse_rename_in *)in)->newdir, from + strlen(from) + 1, other);
        if (renameat(source, path, source, other)) error = errno;
        break;
    }
    case FUSE_OPENDIR: {
        path_of(head->nodeid, "", path);
        fd = openat(source, path, O_RDONLY | O_DIRECTORY);
        struct fuse_open_out told = {.fh = fd < 0 ? 0 : (uintptr_t)fdopendir(fd)};
        reply(unique, fd < 0 ? errno : 0, &told, sizeof told);
        return;
    }
    case FUSE_READDIR: read_directory(unique, (void *)in, out); return;
    case FUSE_RELEASEDIR: closedir((DIR *)(uintptr_t)((struct fuse_release_in *)in)->fh); break;
    case FUSE_STATFS: {
        struct statvfs s;
        if (fstatvfs(source, &s)) error = errno;
        struct fuse_statfs_out told = {{s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, s.f_bsize, s.f_namemax, s.f_frsize}};
        reply(unique, error, &told, sizeof told);
        return;
    }
    /* ENOSYS is said once: from then on the client answers EOPNOTSUPP itself. */
    case FUSE_GETXATTR: case FUSE_LISTXATTR: error = option(NO_XATTR) ? ENOSYS : ENODATA; break;
    case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: return;
    default: error = ENOSYS;
    }
    reply(unique, error, NULL, 0);
}

static void *serve(void *unused) {
    size_t size = MAX_IO + 65536;
    char *in = malloc(size), *out = malloc(size);
    (void)unused;
    for (;;) {
        ssize_t got = read(device, in, size);
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
        if (got <= 0) exit(errno == ENODEV ? 0 : 1);
        answer((void *)in, in + sizeof(struct fuse_in_header), out);
    }
}

static void *watch(void *mount_point) {
    char unused;
    while (read(0, &unused, 1) > 0) continue;
    umount2(mount_point, MNT_DETACH);
    return NULL;
}

int main(int count, char **words) {
    char text[128];
    struct stat input;
    pthread_t thread;
    for (int i = 3; i < count; i++) {
        char *value = strchr(words[i], '=');
        int which = 0;
        while (which < OPTIONS && (!value || strncmp(words[i], options[which].name, value - words[i]))) which++;
        if (which == OPTIONS) return fprintf(stderr, "slowfs: %s: no such option\n", words[i]), 2;
        options[which].value = atol(value + 1);
    }
    if (count < 3) return fprintf(stderr, "usage: slowfs SOURCE MOUNT_POINT [OPTION=N]...\n"), 2;
    nodes[0] = nodes[1] = "";
    if ((source = open(words[1], O_RDONLY | O_DIRECTORY)) < 0) return perror(words[1]), 1;
    if ((device = open("/dev/fuse", O_RDWR)) < 0) return perror("/dev/fuse"), 1;
    snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (mount("slowfs", words[2], "fuse.slowfs", MS_NOSUID | MS_NODEV, text)) return perror("slowfs: mount"), 1;
    if (daemon(0, 1)) return perror("slowfs"), umount(words[2]), 1;
    dup2(open("/dev/null", O_RDWR), 1);
    dup2(1, 2);
    if (fstat(0, &input) == 0 && S_ISFIFO(input.st_mode)) pthread_create(&thread, NULL, watch, words[2]);
    for (int i = 1; i < THREADS; i++) pthread_create(&thread, NULL, serve, NULL);
    serve(NULL);
}
