/* Signs in folders: of two that share one, the later sees the earlier. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "worker/agent/folder_signs.h"

/* A node's BOOT of a launch that shares `folder`; to be freed. */
static void boot_of_launch(const char *token, uint32_t node, const char *folder,
                           struct rf_msg_boot *out)
{
    rf_schema_init(&rf_msg_boot_schema, out);
    out->node = node;
    out->shared = rf_schema_new(&rf_msg_shared_schema);
    out->shared->token = strdup(token);
    out->shared->nodes = 3;
    out->shared->folders.list = calloc(1, sizeof(char *));
    out->shared->folders.list[0] = strdup(folder);
    out->shared->folders.n = 1;
}

static void boot_of(uint32_t node, const char *folder, struct rf_msg_boot *out)
{
    boot_of_launch("00c0ffee", node, folder, out);
}

/* What the node of BOOT, which is freed, sees in the folder, as text. */
static char *leave_booted(struct rf_msg_boot *boot, const char *folder)
{
    struct rf_msg_hello hello;
    size_t old = 0;
    json_auto_t *told;
    char *text;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    rf_folder_signs_leave(boot, &hello, &old);
    ck_assert_uint_eq(hello.n_folders, 1);
    ck_assert_str_eq(hello.folders[0].path, folder);
    told = rf_schema_encode(&rf_msg_folder_schema, &hello.folders[0]);
    json_object_del(told, "path");
    text = json_dumps(told, JSON_SORT_KEYS | JSON_COMPACT);
    rf_schema_free(&rf_msg_hello_schema, &hello);
    rf_schema_free(&rf_msg_boot_schema, boot);
    return text;
}

static char *leave(uint32_t node, const char *folder)
{
    struct rf_msg_boot boot;
    boot_of(node, folder, &boot);
    return leave_booted(&boot, folder);
}

static void expect(uint32_t node, const char *folder, const char *wanted)
{
    AUTO_FREE char *text = leave(node, folder);
    ck_assert_str_eq(text, wanted);
}

static void take_away(uint32_t node, const char *folder, bool all)
{
    struct rf_msg_boot boot;
    boot_of(node, folder, &boot);
    rf_folder_signs_remove(&boot, all);
    rf_schema_free(&rf_msg_boot_schema, &boot);
}

static void make_folder(char *folder)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

TEST(test_the_later_of_two_sees_the_earlier)
{
    char folder[] = "/tmp/refit-signs-XXXXXX";
    make_folder(folder);
    expect(0, folder, "{\"error\":null,\"sees\":[]}");
    expect(2, folder, "{\"error\":null,\"sees\":[0]}");
    expect(1, folder, "{\"error\":null,\"sees\":[0,2]}");
    take_away(0, folder, false);
    take_away(1, folder, false);
    ck_assert_int_ne(rmdir(folder), 0); /* node 2's is still there */
    take_away(0, folder, true);
    ck_assert_int_eq(rmdir(folder), 0);
}

TEST(test_a_folder_that_cannot_be_used_says_why)
{
    char folder[] = "/tmp/refit-signs-XXXXXX", missing[64];
    make_folder(folder);
    snprintf(missing, sizeof(missing), "%s/missing", folder);
    expect(0, missing, "{\"error\":\"No such file or directory\",\"sees\":[]}");
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Beside one of method disk, which is not. */
TEST(test_the_folder_of_an_export_is_made)
{
    char folder[] = "/tmp/refit-signs-XXXXXX", missing[64], made[64];
    struct rf_msg_boot boot;
    struct rf_msg_hello hello;
    size_t old = 0;
    make_folder(folder);
    snprintf(missing, sizeof(missing), "%s/missing", folder);
    snprintf(made, sizeof(made), "%s/made/too", folder);
    boot_of(0, missing, &boot);
    boot.shared->folders.list =
        realloc(boot.shared->folders.list, 2 * sizeof(char *));
    boot.shared->folders.list[1] = strdup(made);
    boot.shared->folders.n = 2;
    boot.shared->exported = strdup(made);
    rf_schema_init(&rf_msg_hello_schema, &hello);
    rf_folder_signs_leave(&boot, &hello, &old);
    ck_assert_uint_eq(old, strlen(folder));
    ck_assert_str_eq(hello.folders[0].error, "No such file or directory");
    ck_assert_ptr_null(hello.folders[1].error);
    rf_folder_signs_remove(&boot, true);
    ck_assert_int_eq(rmdir(made), 0);
    *strrchr(made, '/') = '\0';
    ck_assert_int_eq(rmdir(made), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    rf_schema_free(&rf_msg_hello_schema, &hello);
    rf_schema_free(&rf_msg_boot_schema, &boot);
}

/* Nobody's file is written over or followed. */
TEST(test_a_name_that_is_taken_is_left_alone)
{
    char folder[] = "/tmp/refit-signs-XXXXXX", name[64], target[64];
    make_folder(folder);
    snprintf(name, sizeof(name), "%s/refit-00c0ffee-1", folder);
    snprintf(target, sizeof(target), "%s/target", folder);
    ck_assert_int_eq(symlink(target, name), 0);
    expect(1, folder, "{\"error\":\"File exists\",\"sees\":[]}");
    ck_assert_int_ne(access(target, F_OK), 0);
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Also one without ranks, which makes no other files. */
TEST(test_a_sign_of_a_killed_agent_is_removed_by_the_next_launch)
{
    char folder[] = "/tmp/refit-signs-XXXXXX", other[64], sign[64];
    struct rf_msg_boot next;
    FILE *file;
    pid_t agent;
    make_folder(folder);
    snprintf(other, sizeof(other), "%s/refit-c0ffee-0", folder);
    file = fopen(other, "w"); /* somebody's, who has nothing to do with us */
    ck_assert_ptr_nonnull(file);
    fputs("coffee", file);
    fclose(file);
    agent = fork();
    if (agent == 0) {
        free(leave(1, folder));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
    snprintf(sign, sizeof(sign), "%s/refit-00c0ffee-1", folder);
    ck_assert_int_eq(access(sign, F_OK), 0);
    /* Its own launch waits for what becomes of it. */
    expect(0, folder, "{\"error\":null,\"sees\":[1]}");
    boot_of_launch("0badcafe", 2, folder, &next);
    free(leave_booted(&next, folder));
    ck_assert_int_ne(access(sign, F_OK), 0);
    expect(2, folder, "{\"error\":null,\"sees\":[0]}"); /* which lives */
    take_away(0, folder, true);
    snprintf(sign, sizeof(sign), "%s/refit-0badcafe-2", folder);
    ck_assert_int_eq(unlink(sign), 0);
    ck_assert_int_eq(unlink(other), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

TEST(test_without_folders_nothing_is_told)
{
    struct rf_msg_boot boot = {.node = 0};
    struct rf_msg_hello hello;
    size_t old = 0;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    rf_folder_signs_leave(&boot, &hello, &old);
    ck_assert_uint_eq(hello.n_folders, 0);
    rf_folder_signs_remove(&boot, true);
    rf_schema_free(&rf_msg_hello_schema, &hello);
}

/* The list of a survey's hello, say, which is decoded and so has memory even if
 * it is empty. */
TEST(test_what_hello_told_before_is_replaced)
{
    char folder[] = "/tmp/refit-signs-XXXXXX";
    struct rf_msg_boot boot;
    struct rf_msg_hello hello;
    size_t old = 0;
    make_folder(folder);
    boot_of(0, folder, &boot);
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.folders = calloc(1, sizeof(*hello.folders));
    hello.folders[0].path = strdup("/old");
    hello.n_folders = 1;
    rf_folder_signs_leave(&boot, &hello, &old);
    ck_assert_uint_eq(hello.n_folders, 1);
    ck_assert_str_eq(hello.folders[0].path, folder);
    rf_folder_signs_remove(&boot, true);
    ck_assert_int_eq(rmdir(folder), 0);
    rf_schema_free(&rf_msg_hello_schema, &hello);
    rf_schema_free(&rf_msg_boot_schema, &boot);
}
