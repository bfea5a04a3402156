/* Writing files whole: a reader sees the old content or the new, never a part.
 */
#ifndef RF_COMMON_STORE_H
#define RF_COMMON_STORE_H

#include <stddef.h>

#include "common/err.h"

/*
 * Replaces `path` by `size` bytes: written and fsynced without a name first
 * (O_TMPFILE; where the file system has none, as "<path>.tmp"), then put in
 * place, then the folder is fsynced. On failure `path` is as it was and nothing
 * is left beside it; a process that is killed leaves at most, and only in the
 * moment between naming and renaming, "<path>.tmp". Of a symbolic link the
 * target is replaced, or made, and the link stays. The file's mode is 0644,
 * less what the umask takes away.
 *
 * What is not a regular file (a device, a FIFO, /proc/PID/fd/N) keeps its place
 * and is appended to, without these promises; "-" is standard output, what
 * stdio holds for it first. A FIFO without a reader blocks, as it does with
 * cat(1), after a warning that says so. A reader that goes is an error (EPIPE),
 * no signal. Any thread.
 */
enum rf_status rf_store(const char *path, const void *data, size_t size,
                        struct rf_err *err) RF_MUST_CHECK;

/*
 * The same for a file that is the program's own, as those of a result folder:
 * what has its name is replaced, be it a symbolic link, and never followed. Nor
 * are the last `own_folders` of the path, which are made (0755 less the umask)
 * if they are missing.
 */
enum rf_status rf_store_own(const char *path, unsigned own_folders,
                            const void *data, size_t size,
                            struct rf_err *err) RF_MUST_CHECK;

/*
 * Whether rf_store() could put a file there now, before there is anything to
 * put: makes one and takes it away. Errors are those of rf_store(). "-", and
 * what is not a regular file, a folder aside, is not tried.
 */
enum rf_status rf_store_check(const char *path,
                              struct rf_err *err) RF_MUST_CHECK;

/* Calls write() until all is written; waits if that would block, even on a
 * non-blocking descriptor. -1 (errno) when it fails. */
int rf_write_all(int fd, const void *data, size_t size);

#endif
