/* Files stored beside a loop. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/commands/store_thread.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

static struct told {
    unsigned times;
    struct rf_err why;
} seen;

static void stored(const struct rf_err *why, void *data)
{
    ck_assert_ptr_eq(data, &seen);
    seen.times++;
    seen.why = why != NULL ? *why : (struct rf_err){0};
}

static enum rf_status start(const struct rf_store_thread_file *file)
{
    uv_loop_t loop;
    seen = (struct told){0};
    uv_loop_init(&loop);
    rf_store_thread_start(&loop, file, stored, &seen);
    ck_assert_uint_eq(seen.times, 0); /* not from inside */
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(seen.times, 1);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    return seen.why.status;
}

/* Stores "text" as `path`; RF_OK, or why not. */
static enum rf_status store(const char *path, bool own, unsigned n_folders)
{
    return start(&(struct rf_store_thread_file){.path = rf_xstrdup(path),
                                                .text = rf_xstrdup("text"),
                                                .own = own,
                                                .n_folders = n_folders});
}

static void check_line(const char *path, const char *expected)
{
    char line[16] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    ck_assert_str_eq(line, expected);
    fclose(file);
}

FIXTURE(fake_root_make, fake_root_remove)

TEST(test_storing_keeps_the_loop_alive_until_the_file_is_there)
{
    const char *path = fake_root_path("file");
    ck_assert_int_eq(store(path, true, 0), RF_OK);
    check_line(path, "text");
}

TEST(test_storing_makes_the_text_of_a_record)
{
    const char *path = fake_root_path("file");
    json_auto_t *record = json_pack("[]");
    ck_assert_int_eq(start(&(struct rf_store_thread_file){
                         .path = rf_xstrdup(path), .record = record}),
                     RF_OK);
    check_line(path, "[]\n");
    ck_assert_uint_eq(record->refcount, 1); /* not taken */
}

TEST(test_storing_tells_why_a_file_cannot_be_stored)
{
    ck_assert_int_eq(store("/dev/null/file", true, 0), RF_ERR_IO);
    assert_says(seen.why.text, "/dev/null/file");
}

TEST(test_storing_makes_only_the_folders_it_is_told_to_make)
{
    const char *path = fake_root_path("a/b/file");
    ck_assert_int_eq(store(path, true, 1), RF_ERR_IO);
    assert_says(seen.why.text, "No such file");
    for (int i = 0; i < 2; i++) { /* missing, then there */
        ck_assert_int_eq(store(path, true, 2), RF_OK);
        ck_assert_int_eq(access(path, R_OK), 0);
    }
    fake_root_run("rm a/b/file && rmdir a/b a"); /* nothing else is there */
}

/* Whose is the link that has the file's name? */
TEST(test_storing_replaces_own_links_and_follows_others)
{
    const char *link = fake_root_path("link"),
               *target = fake_root_path("target");
    struct stat file;
    ck_assert_int_eq(symlink("target", link), 0);
    ck_assert_int_eq(store(link, false, 0), RF_OK);
    ck_assert_int_eq(lstat(link, &file), 0);
    ck_assert(S_ISLNK(file.st_mode));
    check_line(target, "text");
    unlink(target);
    ck_assert_int_eq(store(link, true, 0), RF_OK);
    ck_assert_int_eq(lstat(link, &file), 0);
    ck_assert(S_ISREG(file.st_mode));
    ck_assert_int_eq(access(target, F_OK), -1);
}
