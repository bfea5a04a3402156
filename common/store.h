/* Writes files atomically: a reader sees the old or the new content whole. */
#ifndef RF_COMMON_STORE_H
#define RF_COMMON_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/*
 * Replaces the file `path` by one of `size` bytes: writes and fsyncs them
 * without a name (O_TMPFILE; where the file system lacks it, as "<path>.tmp"),
 * puts the file in place, then fsyncs the folder. On failure `path` is
 * unchanged and no other file is left. A process killed between naming and
 * renaming may leave "<path>.tmp". For a symbolic link the target is replaced,
 * or made, and the link stays. The file's mode is 0644, less the umask.
 *
 * A file that is not regular (a device, a FIFO, /proc/PID/fd/N) stays in place
 * and is appended to, without these promises; "-" is standard output, after the
 * data that stdio has buffered. A FIFO without a reader blocks, like cat(1),
 * after a warning that says so. A reader that closes is an error (EPIPE), not a
 * signal. Any thread.
 */
enum rf_status rf_store(const char *path, const void *data, size_t size,
                        struct rf_err *err) RF_MUST_CHECK;

/*
 * The same for the program's own files, such as those of a result folder: an
 * existing file is replaced, even a symbolic link, and links are never
 * followed. Neither are the last `own_folders` levels of the path, which are
 * made if missing (0755 less the umask).
 */
enum rf_status rf_store_own(const char *path, unsigned own_folders,
                            const void *data, size_t size,
                            struct rf_err *err) RF_MUST_CHECK;

/*
 * Whether rf_store() could create the file now, before there is any data: makes
 * one and removes it. Same errors as rf_store(). Does not try "-" or anything
 * that is neither a regular file nor a folder.
 */
enum rf_status rf_store_check(const char *path,
                              struct rf_err *err) RF_MUST_CHECK;

/* Whether `path` leads to a regular file. */
bool rf_is_file(const char *path);

/* Calls write() until all is written; waits if it would block, even on a
 * non-blocking descriptor. -1 (errno) on failure. */
int rf_write_all(int fd, const void *data, size_t size);

#endif
