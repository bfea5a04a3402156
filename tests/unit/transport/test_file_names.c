/* Names of the files of method disk. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/file_names.h"

static const uint8_t key[RF_DATA_KEY_BYTES] = {1};
static const uint8_t other_key[RF_DATA_KEY_BYTES] = {2};

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

START_TEST(test_every_key_rank_and_file_has_a_name_of_its_own)
{
    char tag[RF_FILE_TAG_SIZE], other[RF_FILE_TAG_SIZE];
    char a[RF_FILE_PATH_SIZE], b[RF_FILE_PATH_SIZE];
    ck_assert(rf_file_tag(key, tag));
    ck_assert(rf_file_tag(other_key, other));
    ck_assert_uint_eq(strlen(tag), RF_FILE_TAG_SIZE - 1);
    ck_assert_str_ne(tag, other);
    ck_assert(rf_file_path("/f", tag, 1, false, a));
    ck_assert_int_eq(strncmp(a, "/f/refit-", 9), 0);
    ck_assert(rf_file_path("/f", tag, 1, true, b));
    ck_assert_str_ne(a, b);
    ck_assert(rf_file_path("/f", tag, 2, false, b));
    ck_assert_str_ne(a, b);
    ck_assert(rf_file_path("/f", other, 1, false, b));
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(test_a_folder_with_too_long_a_name_is_refused)
{
    char folder[RF_FILE_PATH_SIZE], path[RF_FILE_PATH_SIZE];
    memset(folder, 'f', sizeof(folder) - 1);
    folder[sizeof(folder) - 1] = '\0';
    ck_assert(!rf_file_path(folder, "tag", 0, false, path));
}
END_TEST

START_TEST(test_removing_takes_one_rank_only)
{
    char folder[] = "/tmp/refit-names-XXXXXX";
    char mine[2][RF_FILE_PATH_SIZE], others[RF_FILE_PATH_SIZE];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(rf_file_path(folder, "tag", 0, false, mine[0]));
    ck_assert(rf_file_path(folder, "tag", 0, true, mine[1]));
    ck_assert(rf_file_path(folder, "tag", 1, false, others));
    make_file(mine[0]);
    make_file(mine[1]);
    make_file(others);
    rf_file_remove(folder, "tag", 0);
    rf_file_remove(folder, "tag", 0); /* nothing there is no failure */
    ck_assert_int_ne(access(mine[0], F_OK), 0);
    ck_assert_int_ne(access(mine[1], F_OK), 0);
    ck_assert_int_eq(unlink(others), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

Suite *test_file_names_suite(void);
Suite *test_file_names_suite(void)
{
    Suite *suite = suite_create("transport/file_names");
    TCase *names = tcase_create("names");
    tcase_add_test(names, test_every_key_rank_and_file_has_a_name_of_its_own);
    tcase_add_test(names, test_a_folder_with_too_long_a_name_is_refused);
    tcase_add_test(names, test_removing_takes_one_rank_only);
    suite_add_tcase(suite, names);
    return suite;
}
