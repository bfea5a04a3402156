/* See fake_root.h. */
#include "tests/lib/fake_root.h"

#include <check.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

static char root[] = "/tmp/refit-root-XXXXXX";
const char *const fake_root = root;

/* Reachable, so that leak checkers do not report them. */
static char **paths;
static size_t n_paths, cap_paths;

void fake_root_make(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

void fake_root_enter(void)
{
    fake_root_make();
    ck_assert_int_eq(chdir(root), 0);
}

const char *fake_root_path(const char *name)
{
    char *path = rf_xasprintf("%s/%s", root, name);
    RF_PUSH(paths, n_paths, cap_paths, path);
    return path;
}

void fake_root_write_bytes(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(fake_root_path(name), "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void fake_root_write(const char *name, const char *text)
{
    fake_root_write_bytes(name, text, strlen(text));
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

/* Tests may have left a PATH without rm. */
static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void fake_root_remove(void)
{
    int tries = 100; /* a killed child may still write a file */
    while (nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 &&
           --tries > 0) {
        usleep(10000);
    }
    ck_assert_int_gt(tries, 0);
}

void fake_root_leave(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    fake_root_remove();
}
