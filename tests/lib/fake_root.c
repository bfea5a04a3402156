/* See fake_root.h. */
#include "tests/lib/fake_root.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static char root[] = "/tmp/refit-root-XXXXXX";

const char *fake_root_make(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    return root;
}

static void run(const char *command)
{
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): fixed text */
}

void fake_root_run(const char *command, ...)
{
    va_list args;
    char *text, *whole;
    va_start(args, command);
    text = rf_xvasprintf(command, args);
    va_end(args);
    whole = rf_xasprintf("cd '%s' && %s", root, text);
    run(whole);
    free(whole);
    free(text);
}

const char *fake_root_machine(const char *machine)
{
    char *command;
    fake_root_make();
    command = rf_xasprintf("tests/lib/fake-sysfs %s '%s'", machine, root);
    run(command);
    free(command);
    return root;
}

void fake_root_remove(void)
{
    fake_root_run("rm -rf \"$PWD\"");
}
