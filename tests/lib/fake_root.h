/* A folder with files of the kernel like another machine's. One at a time. */
#ifndef RF_TESTS_LIB_FAKE_ROOT_H
#define RF_TESTS_LIB_FAKE_ROOT_H

#include "common/compiler.h"

/* Makes it, empty; returns its path. */
const char *fake_root_make(void);
/* Runs a shell command in it, which must succeed. */
void fake_root_run(const char *command, ...) RF_PRINTF(1, 2);
/* Makes it with a /sys as tests/lib/fake-sysfs makes that of `machine`; returns
 * its path. */
const char *fake_root_machine(const char *machine);
/* Removes it; a fixture's teardown. */
void fake_root_remove(void);

#endif
