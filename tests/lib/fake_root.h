/* A folder for a test's files, such as those of another machine's kernel. One at
 * a time. */
#ifndef RF_TESTS_LIB_FAKE_ROOT_H
#define RF_TESTS_LIB_FAKE_ROOT_H

#include <stddef.h>

#include "common/compiler.h"

extern const char *const fake_root; /* its path, absolute */

/* A fixture: makes it, empty, and removes it with all that is in it. */
void fake_root_make(void);
void fake_root_remove(void);
/* Likewise, for a test that works in it. */
void fake_root_enter(void);
void fake_root_leave(void);
/* Makes it with a /sys as tests/lib/fake-sysfs makes that of `machine`; returns
 * its path. */
const char *fake_root_machine(const char *machine);

/* The path of a name in it; kept until the process ends. */
const char *fake_root_path(const char *name);
/* Writes a file in it. */
void fake_root_write(const char *name, const char *text);
void fake_root_write_bytes(const char *name, const void *data, size_t size);
/* Runs a shell command in it, which must succeed. */
void fake_root_run(const char *command, ...) RF_PRINTF(1, 2);

#endif
