/* Folders made with what is missing above them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/folders.h"
#include "common/mem.h"
#include "tests/unit/unit.h"

static char top[32];

static void setup(void)
{
    snprintf(top, sizeof(top), "/tmp/refit-folders-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
}

/* Fails if a test has left anything. */
static void teardown(void)
{
    ck_assert_int_eq(rmdir(top), 0);
}

static bool is_there(const char *name)
{
    AUTO_FREE char *path = rf_xasprintf("%s/%s", top, name);
    return access(path, F_OK) == 0;
}

/* Makes a folder; whether it and what is above it goes again, down to `kept`.
 */
static void expect_made(const char *name, const char *kept)
{
    AUTO_FREE char *path = rf_xasprintf("%s/%s", top, name);
    size_t old = 0;
    ck_assert_int_eq(rf_folders_make(path, &old), 0);
    ck_assert(is_there(name));
    rf_folders_remove(path, old);
    ck_assert(is_there(kept));
    ck_assert_int_eq(is_there(name), strcmp(name, kept) == 0);
}

FIXTURE(setup, teardown)

TEST(test_what_is_missing_above_a_folder_is_made_and_removed)
{
    AUTO_FREE char *path = rf_xasprintf("%s/old", top);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_made("a/b/c", "");
    expect_made("a//b/", "");
    expect_made("old/b/c", "old");
    expect_made("old", "old"); /* was there and stays */
    ck_assert_int_eq(rmdir(path), 0);
}

TEST(test_a_folder_in_use_is_not_removed)
{
    AUTO_FREE char *path = rf_xasprintf("%s/a/b/c", top);
    AUTO_FREE char *other = rf_xasprintf("%s/a/other", top);
    size_t old = 0;
    ck_assert_int_eq(rf_folders_make(path, &old), 0);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    rf_folders_remove(path, old);
    ck_assert(is_there("a/other") && !is_there("a/b"));
    ck_assert_int_eq(rmdir(other), 0);
    rf_folders_remove(path, old);
    *strrchr(other, '/') = '\0';
    ck_assert_int_eq(rmdir(other), 0);
}

TEST(test_a_folder_that_cannot_be_made_leaves_nothing)
{
    char *path = rf_xasprintf("%s/a/%0300d/c", top, 0); /* no such name */
    size_t old = 7;
    ck_assert_int_eq(rf_folders_make(path, &old), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_uint_eq(old, 7);
    free(path);
}

TEST(test_whose_a_folder_is)
{
    char *path = rf_xasprintf("%s/absent", top), whose[RF_FOLDERS_WHOSE_SIZE],
         expected[RF_FOLDERS_WHOSE_SIZE];
    ck_assert_int_eq(chmod(top, 01750), 0);
    snprintf(expected, sizeof(expected),
             " (of uid %u, mode 1750; this is uid %u)", getuid(), getuid());
    rf_folders_whose(top, whose);
    ck_assert_str_eq(whose, expected);
    errno = EACCES;
    rf_folders_whose(path, whose);
    ck_assert_str_eq(whose, "");
    ck_assert_int_eq(errno, EACCES);
    free(path);
}
