/* Names of files in shared folders. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "transport/disk/disk_names.h"

static const uint8_t key[RF_DATA_KEY_BYTES] = {1};
static const uint8_t other_key[RF_DATA_KEY_BYTES] = {2};

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

TEST(test_every_key_rank_and_file_has_a_name_of_its_own)
{
    char tag[RF_DISK_LABEL_SIZE], other[RF_DISK_LABEL_SIZE];
    char a[RF_DISK_PATH_SIZE], b[RF_DISK_PATH_SIZE];
    ck_assert(rf_disk_label(key, getpid(), tag));
    ck_assert(rf_disk_label(other_key, getpid(), other));
    ck_assert(rf_disk_label_is_good(tag));
    ck_assert_str_ne(tag, other);
    ck_assert(rf_disk_path("/f", tag, 1, RF_DISK_DATA, a));
    ck_assert_int_eq(strncmp(a, "/f/refit-", 9), 0);
    ck_assert(rf_disk_path("/f", tag, 1, RF_DISK_LEDGER, b));
    ck_assert_str_ne(a, b);
    ck_assert(rf_disk_path("/f", tag, 2, RF_DISK_DATA, b));
    ck_assert_str_ne(a, b);
    ck_assert(rf_disk_path("/f", other, 1, RF_DISK_DATA, b));
    ck_assert_str_ne(a, b);
}

TEST(test_a_folder_with_too_long_a_name_is_refused)
{
    char folder[RF_DISK_PATH_SIZE], path[RF_DISK_PATH_SIZE];
    memset(folder, 'f', sizeof(folder) - 1);
    folder[sizeof(folder) - 1] = '\0';
    ck_assert(!rf_disk_path(folder, "tag", 0, RF_DISK_DATA, path));
}

TEST(test_removing_takes_one_rank_only)
{
    char folder[] = "/tmp/refit-names-XXXXXX";
    char mine[2][RF_DISK_PATH_SIZE], others[RF_DISK_PATH_SIZE];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(rf_disk_path(folder, "tag", 0, RF_DISK_DATA, mine[0]));
    ck_assert(rf_disk_path(folder, "tag", 0, RF_DISK_LEDGER, mine[1]));
    ck_assert(rf_disk_path(folder, "tag", 1, RF_DISK_DATA, others));
    make_file(mine[0]);
    make_file(mine[1]);
    make_file(others);
    rf_disk_remove(folder, "tag", 0);
    rf_disk_remove(folder, "tag", 0); /* nothing there is no failure */
    ck_assert_int_ne(access(mine[0], F_OK), 0);
    ck_assert_int_ne(access(mine[1], F_OK), 0);
    ck_assert_int_eq(unlink(others), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

TEST(test_labels_that_are_not_well_formed_are_not_taken)
{
    static const char *const bad[] = {
        "",
        "..",
        "a/../b",
        "0123456789abcdef.01234567.1.9.0123456789abcde",
        "0123456789abcdef.01234567.1.9.0123456789abcdef/",
        "0123456789abcdef.01234567.1.-9.0123456789abcdef",
        "0123456789abcdef.01234567.1.0123456789abcdef",
        "0123456789abcdef.01234567.-1.9.0123456789abcdef",
        "0123456789abcdef.01234567.01.9.0123456789abcdef",
        "0123456789abcdef.0123456.1.9.0123456789abcdef"};
    ck_assert(rf_disk_label_is_good(
        "0123456789abcdef.01234567.1.9.0123456789abcdef"));
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        ck_assert_msg(!rf_disk_label_is_good(bad[i]), "%s", bad[i]);
    }
}

/* A process that was, and whose id is not used again so soon. */
static pid_t gone_process(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* Sweeps a folder with one file of `label`, last written `age_s` ago; whether
 * the file is gone. */
static bool is_swept_after(char *owner, const char *label, const char *suffix,
                           time_t age_s)
{
    char folder[] = "/tmp/refit-sweep-XXXXXX", path[RF_DISK_PATH_SIZE];
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}};
    bool gone;
    times[1] = times[0];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/refit-%s%s", folder, label, suffix);
    make_file(path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    rf_disk_sweep(folder, "c0ffee", &owner, owner != NULL);
    gone = access(path, F_OK) != 0;
    if (!gone) {
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
    return gone;
}

static bool is_swept(const char *label, const char *suffix, time_t age_s)
{
    return is_swept_after(NULL, label, suffix, age_s);
}

TEST(test_sweeping_removes_what_gone_agents_of_this_node_left)
{
    char label[RF_DISK_LABEL_SIZE];
    ck_assert(rf_disk_label(key, gone_process(), label));
    ck_assert(is_swept(label, "-0.data", 0));
    ck_assert(is_swept(label, "-12.ledger", 0));
    ck_assert(is_swept(label, "-3.export", 0));
}

TEST(test_sweeping_keeps_files_of_agents_that_live)
{
    char label[RF_DISK_LABEL_SIZE];
    ck_assert(rf_disk_label(key, getpid(), label));
    ck_assert(!is_swept(label, "-0.data", 0));
    ck_assert(!is_swept(label, "-0.ledger", 0));
}

TEST(test_sweeping_removes_files_of_given_owners_on_any_node)
{
    char label[RF_DISK_LABEL_SIZE], owner[RF_DISK_OWNER_SIZE];
    char parents[RF_DISK_OWNER_SIZE];
    ck_assert(rf_disk_label(key, getpid(), label));
    ck_assert(rf_disk_owner(getpid(), owner));
    ck_assert(rf_disk_owner(getppid(), parents));
    ck_assert(is_swept_after(owner, label, "-0.export", 0));
    ck_assert(!is_swept_after(parents, label, "-0.export", 0));
    label[0] = owner[0] = label[0] == '0' ? '1' : '0';
    ck_assert(is_swept_after(owner, label, "-0.data", 0));
}

TEST(test_sweeping_is_not_misled_by_a_process_of_the_same_id)
{
    char label[RF_DISK_LABEL_SIZE], other[2 * RF_DISK_LABEL_SIZE];
    char *tag;
    ck_assert(rf_disk_label(key, getpid(), label));
    tag = strrchr(label, '.'); /* behind the time when it started */
    snprintf(other, sizeof(other), "%.*s0%s", (int)(tag - label), label, tag);
    ck_assert(rf_disk_label_is_good(other));
    ck_assert(is_swept(other, "-0.data", 0));
}

TEST(test_sweeping_removes_what_a_zombie_left)
{
    char label[RF_DISK_LABEL_SIZE];
    siginfo_t info;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert(rf_disk_label(key, pid, label));
    ck_assert(is_swept(label, "-0.data", 0));
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

TEST(test_sweeping_keeps_files_of_other_nodes)
{
    char label[RF_DISK_LABEL_SIZE];
    ck_assert(rf_disk_label(key, gone_process(), label));
    label[0] = label[0] == '0' ? '1' : '0';
    ck_assert(!is_swept(label, "-0.data", 0));
}

/* "node.boot.pid.ticks.tag": another boot, and an agent that happens to live.
 */
TEST(test_sweeping_removes_what_is_older_than_this_boot)
{
    char label[RF_DISK_LABEL_SIZE];
    struct timespec up;
    ck_assert_int_eq(clock_gettime(CLOCK_BOOTTIME, &up), 0);
    ck_assert(rf_disk_label(key, getpid(), label));
    label[17] = label[17] == '0' ? '1' : '0';
    ck_assert(is_swept(label, "-0.data", up.tv_sec + 3600));
    ck_assert(!is_swept(label, "-0.data", 0)); /* a twin uses it now */
}

TEST(test_sweeping_keeps_files_with_other_names)
{
    char label[RF_DISK_LABEL_SIZE];
    ck_assert(rf_disk_label(key, gone_process(), label));
    ck_assert(!is_swept(label, "-0.data.gz", 0));
    ck_assert(!is_swept(label, "-0.txt", 0));
    ck_assert(!is_swept(label, ".data", 0));
    ck_assert(!is_swept("1", "-0.data", 0));
    rf_disk_sweep("/nowhere", "c0ffee", NULL, 0); /* is no failure */
}
