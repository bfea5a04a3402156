/* See fake_sysfs.h. */
#include "tests/lib/fake_sysfs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[] = "/tmp/refit-sysfs-XXXXXX";

static void run(const char *command, const char *before)
{
    char line[256];
    snprintf(line, sizeof(line), "%s %s '%s'", command, before, root);
    ck_assert_int_eq(system(line), 0); /* NOLINT(cert-env33-c): fixed text */
}

const char *fake_sysfs(const char *machine)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    run("tests/lib/fake-sysfs", machine);
    return root;
}

void fake_sysfs_remove(void)
{
    run("rm -rf", "");
}
