/* Files written whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/store.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

static int count_files(void)
{
    DIR *dir = opendir(fake_root);
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

FIXTURE(fake_root_make, fake_root_remove)

TEST(test_store_makes_and_replaces)
{
    const char *path = fake_root_path("file");
    ck_assert_int_eq(rf_store(path, "one", 3, NULL), RF_OK);
    expect_content(path, "one");
    ck_assert_int_eq(rf_store(path, "two", 3, NULL), RF_OK);
    expect_content(path, "two");
    ck_assert_int_eq(count_files(), 1);
}

TEST(test_store_passes_over_what_a_killed_process_left)
{
    const char *path = fake_root_path("file");
    const char *left = fake_root_path("file.tmp");
    ck_assert_int_eq(rf_store(path, "one", 3, NULL), RF_OK);
    ck_assert_int_eq(rf_store(left, "junk", 4, NULL), RF_OK);
    ck_assert_int_eq(rf_store(path, "two", 3, NULL), RF_OK);
    expect_content(path, "two");
    ck_assert_int_eq(count_files(), 1);
}

TEST(test_store_failure_leaves_nothing)
{
    struct rf_err err = {0};
    const char *taken = fake_root_path("taken");
    assert_fails(rf_store(fake_root_path("absent/file"), "x", 1, &err),
                 RF_ERR_IO, err, "absent/file");
    ck_assert_int_eq(mkdir(taken, 0700), 0);
    ck_assert_int_eq(rf_store(taken, "x", 1, &err), RF_ERR_IO);
    ck_assert_int_eq(count_files(), 1);
}

TEST(test_store_check_says_what_a_store_would)
{
    struct rf_err err = {0};
    assert_fails(rf_store_check(fake_root_path("absent/file"), &err), RF_ERR_IO,
                 err, "absent/file");
    ck_assert_int_eq(rf_store_check(fake_root, &err), RF_ERR_IO);
    assert_ok(rf_store_check("-", &err), err);
    assert_ok(rf_store_check("/dev/full", &err), err);
    assert_ok(rf_store_check(fake_root_path("file"), &err), err);
    ck_assert_int_eq(count_files(), 0);
}

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

TEST(test_store_needs_no_proc)
{
    const char *path = fake_root_path("file");
    int code = store_without_proc(path);
    if (code != NO_NAMESPACE) {
        ck_assert_int_eq(code, 0);
        expect_content(path, "two");
        ck_assert_int_eq(count_files(), 1);
    }
}

static bool is_type(const char *path, mode_t type)
{
    struct stat file;
    return lstat(path, &file) == 0 && (file.st_mode & S_IFMT) == type;
}

LOOP_TEST(test_store_replaces_what_a_link_points_to, 2)
{
    const char *target = fake_root_path("target");
    const char *middle = fake_root_path("middle");
    const char *link = fake_root_path("link");
    ck_assert_int_eq(symlink(_i == 0 ? target : "target", middle), 0);
    ck_assert_int_eq(symlink("middle", link), 0);
    ck_assert_int_eq(rf_store(link, "one", 3, NULL), RF_OK); /* was dangling */
    expect_content(target, "one");
    ck_assert_int_eq(rf_store(link, "two", 3, NULL), RF_OK);
    expect_content(target, "two");
    ck_assert(is_type(link, S_IFLNK) && is_type(middle, S_IFLNK));
    ck_assert(is_type(target, S_IFREG));
    ck_assert_int_eq(count_files(), 3);
}

/* Also one with the name that a file has for a moment. */
TEST(test_an_own_file_takes_the_place_of_a_link)
{
    const char *victim = fake_root_path("victim");
    const char *path = fake_root_path("file");
    const char *temporary = fake_root_path("file.tmp");
    ck_assert_int_eq(rf_store(victim, "victim", 6, NULL), RF_OK);
    ck_assert_int_eq(symlink("victim", path), 0);
    ck_assert_int_eq(symlink("victim", temporary), 0);
    ck_assert_int_eq(rf_store_own(path, 0, "own", 3, NULL), RF_OK);
    expect_content(victim, "victim");
    expect_content(path, "own");
    ck_assert(is_type(path, S_IFREG));
    ck_assert_int_eq(count_files(), 2);
}

TEST(test_own_folders_are_made_and_are_no_links)
{
    struct rf_err err = {0};
    const char *victim = fake_root_path("victim");
    const char *path = fake_root_path("one/two/file");
    const char *link = fake_root_path("link");
    const char *through = fake_root_path("link/file");
    ck_assert_int_eq(rf_store_own(path, 1, "own", 3, &err), RF_ERR_IO);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(rf_store_own(path, 2, "own", 3, NULL), RF_OK);
    expect_content(path, "own");
    ck_assert_int_eq(mkdir(victim, 0700), 0);
    ck_assert_int_eq(symlink("victim", link), 0);
    assert_fails(rf_store_own(through, 1, "own", 3, &err), RF_ERR_IO, err,
                 "link/file");
    ck_assert_int_eq(rmdir(victim), 0); /* nothing is in it */
}

TEST(test_store_refuses_a_circle_of_links)
{
    struct rf_err err = {0};
    const char *path = fake_root_path("link");
    ck_assert_int_eq(symlink("link", path), 0);
    assert_fails(rf_store(path, "x", 1, &err), RF_ERR_IO, err, strerror(ELOOP));
    ck_assert(is_type(path, S_IFLNK));
}

TEST(test_store_writes_through_a_fifo)
{
    const char *path = fake_root_path("fifo");
    char text[8] = "";
    int reader;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(rf_store(path, "one", 3, NULL), RF_OK);
    ck_assert_int_eq(read(reader, text, sizeof(text)), 3);
    ck_assert_str_eq(text, "one");
    ck_assert(is_type(path, S_IFIFO));
    ck_assert_int_eq(count_files(), 1);
    close(reader);
}

TEST(test_store_waits_for_the_reader_of_a_fifo)
{
    const char *path = fake_root_path("fifo");
    char text[8] = "";
    int reader, status;
    pid_t child;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    child = fork();
    if (child == 0) {
        _exit(rf_store(path, "one", 3, NULL) != RF_OK);
    }
    reader = open(path, O_RDONLY);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(read(reader, text, sizeof(text)), 3);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(reader);
}

TEST(test_store_reports_a_device_that_is_full)
{
    struct rf_err err = {0};
    const char *path = fake_root_path("full");
    /* One of our own, where that can be: root could lose that of the machine.
     */
    mode_t type = mknod(path, S_IFCHR | 0600, makedev(1, 7)) == 0 ? S_IFCHR
                  : symlink("/dev/full", path) == 0               ? S_IFLNK
                                                                  : 0;
    assert_fails(rf_store(path, "x", 1, &err), RF_ERR_IO, err,
                 strerror(ENOSPC));
    ck_assert(is_type(path, type));
}

/* A name of standard output: the usual one, one as /dev/stdout is, which root
 * could lose to a test that fails, and one in a folder of /proc. */
static const char *output_name(int which)
{
    const char *name = fake_root_path("stdout");
    if (which != 1) {
        return which == 0 ? "-" : "/proc/self/fd/1";
    }
    ck_assert_int_eq(symlink("/proc/self/fd/1", name), 0);
    return name;
}

LOOP_TEST(test_store_reports_a_reader_that_has_gone, 3)
{
    const char *name = output_name(_i);
    struct rf_err err = {0};
    int ends[2], out = dup(STDOUT_FILENO);
    enum rf_status status;
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    ck_assert_int_ge(dup2(ends[1], STDOUT_FILENO), 0);
    status = rf_store(name, "x", 1, &err); /* not the end of us */
    ck_assert_int_ge(dup2(out, STDOUT_FILENO), 0);
    ck_assert_int_eq(status, RF_ERR_IO);
    assert_says(err.text, strerror(EPIPE));
    close(ends[1]);
    close(out);
}

/* Also where standard output is a file that a shell has opened to append. */
LOOP_TEST(test_store_goes_to_standard_output, 3)
{
    const char *path = fake_root_path("output");
    const char *name = output_name(_i);
    int out = dup(STDOUT_FILENO), file;
    enum rf_status status;
    ck_assert_int_eq(rf_store(path, "before ", 7, NULL), RF_OK);
    file = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
    if (_i == 0) {
        printf("first "); /* still held by stdio */
    }
    status = rf_store(name, "page", 4, NULL);
    ck_assert_int_ge(dup2(out, STDOUT_FILENO), 0);
    ck_assert_int_eq(status, RF_OK);
    expect_content(path, _i == 0 ? "before first page" : "before page");
    ck_assert_int_eq(count_files(), _i == 1 ? 2 : 1);
    close(file);
    close(out);
}

static void *read_all(void *data)
{
    const int *fd = data;
    char block[4096];
    size_t size = 0;
    ssize_t got;
    while ((got = read(*fd, block, sizeof(block))) > 0) {
        size += (size_t)got;
    }
    return (void *)size;
}

TEST(test_store_write_all_waits_where_a_write_would_block)
{
    const size_t size = (size_t)1 << 20; /* more than a pipe holds */
    AUTO_FREE char *data = rf_xcalloc(1, size);
    pthread_t reader;
    void *got;
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_all, &ends[0]), 0);
    ck_assert_int_eq(rf_write_all(ends[1], data, size), 0);
    close(ends[1]);
    pthread_join(reader, &got);
    ck_assert_uint_eq((size_t)got, size);
    close(ends[0]);
}
