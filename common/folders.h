/* Creates and removes folders together with missing parents. */
#ifndef RF_COMMON_FOLDERS_H
#define RF_COMMON_FOLDERS_H

#include <stddef.h>

#include "common/compiler.h"

#define RF_FOLDERS_MODE 0755 /* less the umask */

/*
 * Creates every missing level of `path`. *old: bytes of `path` that name
 * existing levels. On failure returns -1 (errno) and removes the levels it
 * created. Any thread.
 */
int rf_folders_make(const char *path, size_t *old) RF_MUST_CHECK;

/* Removes the levels of `path` beyond its first `old` bytes, deepest first,
 * stopping at the first that is not empty. */
void rf_folders_remove(const char *path, size_t old);

#define RF_FOLDERS_WHOSE_SIZE 80

/* For errors about a file or folder that this process may not access: its
 * owner, such as " (of uid 0, mode 0700; this is uid 1000)", or "" when
 * unknown. Any thread; keeps errno. */
void rf_folders_whose(const char *path, char out[RF_FOLDERS_WHOSE_SIZE]);

#endif
