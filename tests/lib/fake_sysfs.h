/* A folder with a /sys like another machine's. */
#ifndef RF_TESTS_LIB_FAKE_SYSFS_H
#define RF_TESTS_LIB_FAKE_SYSFS_H

/* Makes it as tests/lib/fake-sysfs makes `machine`; returns the folder, which
 * contains "sys". One at a time. */
const char *fake_sysfs(const char *machine);
/* Removes it; a fixture's teardown. */
void fake_sysfs_remove(void);

#endif
