/* Folders with all that is missing above them. */
#ifndef RF_COMMON_FOLDERS_H
#define RF_COMMON_FOLDERS_H

#include <stddef.h>

#include "common/compiler.h"

/*
 * Makes every missing level of `path`, with mode 0755 less what the umask takes
 * away. *old: how many bytes of `path` name what was there before. Fails with
 * -1 (errno), and then has removed what it made. Any thread.
 */
int rf_folders_make(const char *path, size_t *old) RF_MUST_CHECK;

/* Removes the levels of `path` beyond its first `old` bytes, from the last on
 * and as far as they are empty. */
void rf_folders_remove(const char *path, size_t old);

#endif
