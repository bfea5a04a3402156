/* Files written whole. */
#include <check.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/store.h"

static char folder[32];

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/refit-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char *command = rf_xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static int count_files(void)
{
    DIR *dir = opendir(folder);
    int count = -2;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static void expect_content(const char *path, const char *content)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(text, content);
}

START_TEST(test_store_makes_and_replaces)
{
    char *path = rf_xasprintf("%s/file", folder);
    ck_assert_int_eq(rf_store(path, "one", 3, NULL), RF_OK);
    expect_content(path, "one");
    ck_assert_int_eq(rf_store(path, "two", 3, NULL), RF_OK);
    expect_content(path, "two");
    ck_assert_int_eq(count_files(), 1);
    free(path);
}
END_TEST

START_TEST(test_store_passes_over_what_a_killed_process_left)
{
    char *path = rf_xasprintf("%s/file", folder);
    char *left = rf_xasprintf("%s.tmp", path);
    ck_assert_int_eq(rf_store(path, "one", 3, NULL), RF_OK);
    ck_assert_int_eq(rf_store(left, "junk", 4, NULL), RF_OK);
    ck_assert_int_eq(rf_store(path, "two", 3, NULL), RF_OK);
    expect_content(path, "two");
    ck_assert_int_eq(count_files(), 1);
    free(left);
    free(path);
}
END_TEST

START_TEST(test_store_failure_leaves_nothing)
{
    struct rf_err err = {0};
    char *path = rf_xasprintf("%s/absent/file", folder);
    ck_assert_int_eq(rf_store(path, "x", 1, &err), RF_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "absent/file"));
    free(path);
    path = rf_xasprintf("%s/taken", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(rf_store(path, "x", 1, &err), RF_ERR_IO);
    ck_assert_int_eq(count_files(), 1);
    free(path);
}
END_TEST

/* In a process of its own with nothing in /proc; NO_NAMESPACE where that cannot
 * be had. */
#define NO_NAMESPACE 77
static int store_without_proc(const char *path)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if ((unshare(CLONE_NEWNS) != 0 &&
             unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", "/proc", "tmpfs", 0, NULL) != 0) {
            _exit(NO_NAMESPACE);
        }
        _exit(rf_store(path, "one", 3, NULL) != RF_OK ||
              rf_store(path, "two", 3, NULL) != RF_OK);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(test_store_needs_no_proc)
{
    char *path = rf_xasprintf("%s/file", folder);
    int code = store_without_proc(path);
    if (code != NO_NAMESPACE) {
        ck_assert_int_eq(code, 0);
        expect_content(path, "two");
        ck_assert_int_eq(count_files(), 1);
    }
    free(path);
}
END_TEST

Suite *test_store_suite(void);
Suite *test_store_suite(void)
{
    Suite *suite = suite_create("store");
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_store_makes_and_replaces);
    tcase_add_test(tests, test_store_passes_over_what_a_killed_process_left);
    tcase_add_test(tests, test_store_failure_leaves_nothing);
    tcase_add_test(tests, test_store_needs_no_proc);
    suite_add_tcase(suite, tests);
    return suite;
}
