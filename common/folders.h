/* Folders with all that is missing above them. */
#ifndef RF_COMMON_FOLDERS_H
#define RF_COMMON_FOLDERS_H

#include <stddef.h>

#include "common/compiler.h"

#define RF_FOLDERS_MODE 0755 /* less what the umask takes away */

/*
 * Makes every missing level of `path`. *old: how many bytes of `path` name what
 * was there before. Fails with -1 (errno), and then has removed what it made.
 * Any thread.
 */
int rf_folders_make(const char *path, size_t *old) RF_MUST_CHECK;

/* Removes the levels of `path` beyond its first `old` bytes, from the last on
 * and as far as they are empty. */
void rf_folders_remove(const char *path, size_t old);

#define RF_FOLDERS_WHOSE_SIZE 80

/* For errors about a file or folder that refuses this process: whose it is,
 * such as " (of uid 0, mode 0700; this is uid 1000)", or "" where that cannot
 * be found out. Any thread; keeps errno. */
void rf_folders_whose(const char *path, char out[RF_FOLDERS_WHOSE_SIZE]);

#endif
