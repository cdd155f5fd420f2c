/* Makes one call of the C library fail, or all from one on: preloaded into a program under test (LD_PRELOAD).

   FAULT_BELOW   only files below this directory count
   FAULT_AT      the number of the call that fails, from 1 on; 0: none
   FAULT_ERRNO   the error; ENOSPC holds from that call on, for all that needs room, after a short write
   FAULT_LOG     a file to which each counted call is written, as "name path"
   FAULT_FLOCK   the error of each flock, as on a file system without locks; wherever the file is */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long count;

static void path_of(int directory, const char *path, char *found) {
    char link[64];
    ssize_t length = 0;
    if (path && path[0] == '/') {
        snprintf(found, PATH_MAX, "%s", path);
        return;
    }
    snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
    length = readlink(link, found, PATH_MAX - 1);
    found[length < 0 ? 0 : length] = 0;
    if (path)
        snprintf(found + strlen(found), PATH_MAX - strlen(found), "/%s", path);
}

/* Return the error that this call has to fail with; 0 for none. */
static int fault(const char *name, int directory, const char *path, int needs_room) {
    const char *below = getenv("FAULT_BELOW"), *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    const char *log = getenv("FAULT_LOG");
    char whole[PATH_MAX] = "", line[PATH_MAX + 64];
    int saved = errno, error = number ? atoi(number) : EIO;
    long when = at ? atol(at) : 0;
    if (!below || (error == ENOSPC && !needs_room))
        return 0;
    path_of(directory, path, whole);
    errno = saved;
    if (strncmp(whole, below, strlen(below)))
        return 0;
    count++;
    if (log) {
        int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%s %s\n", name, whole);
        if (file >= 0) {
            syscall(SYS_write, file, line, length);
            syscall(SYS_close, file);
        }
        errno = saved;
    }
    return when && (count == when || (error == ENOSPC && count > when)) ? error : 0;
}

#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(name, directory, path, needs_room)                                                                     \
    do {                                                                                                               \
        int error = fault(name, directory, path, needs_room);                                                          \
        if (error) {                                                                                                   \
            errno = error;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

#define WRITES(name, ...)                                                                                              \
    do {                                                                                                               \
        int error = fault(#name, file, NULL, 1);                                                                       \
        if (error == ENOSPC && size > 1 && count == atol(getenv("FAULT_AT")))                                          \
            size /= 2; /* what is left of the disk */                                                                  \
        else if (error) {                                                                                              \
            errno = error;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
        return __VA_ARGS__;                                                                                            \
    } while (0)

ssize_t write(int file, const void *bytes, size_t size) {
    WRITES(write, REAL(ssize_t, write, int, const void *, size_t)(file, bytes, size));
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    WRITES(pwrite, REAL(ssize_t, pwrite, int, const void *, size_t, off_t)(file, bytes, size, at));
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    WRITES(pwrite64, REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)(file, bytes, size, at));
}
ssize_t writev(int file, const struct iovec *parts, int number) {
    FAIL_IF("writev", file, NULL, 1);
    return REAL(ssize_t, writev, int, const struct iovec *, int)(file, parts, number);
}
int ftruncate(int file, off_t size) {
    FAIL_IF("ftruncate", file, NULL, 0);
    return REAL(int, ftruncate, int, off_t)(file, size);
}
int ftruncate64(int file, off64_t size) {
    FAIL_IF("ftruncate64", file, NULL, 0);
    return REAL(int, ftruncate64, int, off64_t)(file, size);
}
int fsync(int file) {
    FAIL_IF("fsync", file, NULL, 1);
    return REAL(int, fsync, int)(file);
}
int fdatasync(int file) {
    FAIL_IF("fdatasync", file, NULL, 1);
    return REAL(int, fdatasync, int)(file);
}

#define CREATES(flags) ((flags) & (O_CREAT | O_TRUNC))
#define OPENS(name, directory, ...)                                                                                    \
    do {                                                                                                               \
        va_list more;                                                                                                  \
        mode_t mode;                                                                                                   \
        va_start(more, flags);                                                                                         \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                               \
        va_end(more);                                                                                                  \
        if (CREATES(flags))                                                                                            \
            FAIL_IF(#name, directory, path, 1);                                                                        \
        return __VA_ARGS__;                                                                                            \
    } while (0)

int open(const char *path, int flags, ...) {
    OPENS(open, AT_FDCWD, REAL(int, open, const char *, int, ...)(path, flags, mode));
}
int open64(const char *path, int flags, ...) {
    OPENS(open64, AT_FDCWD, REAL(int, open64, const char *, int, ...)(path, flags, mode));
}
int openat(int directory, const char *path, int flags, ...) {
    OPENS(openat, directory, REAL(int, openat, int, const char *, int, ...)(directory, path, flags, mode));
}
int openat64(int directory, const char *path, int flags, ...) {
    OPENS(openat64, directory, REAL(int, openat64, int, const char *, int, ...)(directory, path, flags, mode));
}

int mkdir(const char *path, mode_t mode) {
    FAIL_IF("mkdir", AT_FDCWD, path, 1);
    return REAL(int, mkdir, const char *, mode_t)(path, mode);
}
int mkdirat(int directory, const char *path, mode_t mode) {
    FAIL_IF("mkdirat", directory, path, 1);
    return REAL(int, mkdirat, int, const char *, mode_t)(directory, path, mode);
}
int rename(const char *from, const char *to) {
    FAIL_IF("rename", AT_FDCWD, to, 1);
    return REAL(int, rename, const char *, const char *)(from, to);
}
int renameat(int from_directory, const char *from, int directory, const char *to) {
    FAIL_IF("renameat", directory, to, 1);
    return REAL(int, renameat, int, const char *, int, const char *)(from_directory, from, directory, to);
}
int link(const char *from, const char *to) {
    FAIL_IF("link", AT_FDCWD, to, 1);
    return REAL(int, link, const char *, const char *)(from, to);
}
int linkat(int from_directory, const char *from, int directory, const char *to, int flags) {
    FAIL_IF("linkat", directory, to, 1);
    return REAL(int, linkat, int, const char *, int, const char *, int)(from_directory, from, directory, to, flags);
}
int symlink(const char *from, const char *to) {
    FAIL_IF("symlink", AT_FDCWD, to, 1);
    return REAL(int, symlink, const char *, const char *)(from, to);
}
int unlink(const char *path) {
    FAIL_IF("unlink", AT_FDCWD, path, 0);
    return REAL(int, unlink, const char *)(path);
}
int unlinkat(int directory, const char *path, int flags) {
    FAIL_IF("unlinkat", directory, path, 0);
    return REAL(int, unlinkat, int, const char *, int)(directory, path, flags);
}
int flock(int file, int operation) {
    const char *number = getenv("FAULT_FLOCK");
    if (number) {
        errno = atoi(number);
        return -1;
    }
    return REAL(int, flock, int, int)(file, operation);
}
