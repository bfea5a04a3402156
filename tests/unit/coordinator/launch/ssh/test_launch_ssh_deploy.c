/* The launcher `ssh` copying the worker to a real, private sshd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/coordinator/launch/ssh/launch_sshd.h"
#include "tests/unit/unit.h"

SSHD_TESTS

TEST(test_ssh_deploys_the_worker_once)
{
    char pattern[256], name[64] = "", path[300];
    struct stat info;
    FILE *list;
    sshd_start("");
    sshd_how.deploy = true;
    sshd_order.local_worker =
        launch_file("binary", "#!/bin/sh\necho deployed $0\nexec cat\n", 0700);
    sshd_expect_success();
    assert_says(sshd_seen.output, "deployed /");
    assert_says(sshd_seen.noted, "copied ");
    snprintf(pattern, sizeof(pattern), "ls %s/.cache/refit-coord", fake_root);
    list = popen(pattern, "re");
    ck_assert_int_eq(fscanf(list, "%63s", name), 1);
    ck_assert_int_eq(fscanf(list, "%63s", pattern), EOF); /* nothing else */
    pclose(list);
    ck_assert_uint_eq(strlen(name), strlen("refit-worker-") + 16);
    snprintf(path, sizeof(path), "%s/.cache/refit-coord/%s", fake_root, name);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    sshd_expect_success();
    ck_assert_uint_eq(sshd_seen.notes, 0); /* it was there */
    ck_assert_int_eq(truncate(path, 3), 0);
    sshd_expect_success(); /* not the same: replaced */
    ck_assert_uint_eq(sshd_seen.notes, 1);
}

/* The module goes beside the worker, in a folder for just these two. */
TEST(test_ssh_deploys_the_module_beside_the_worker)
{
    char command[300];
    FILE *list;
    int folders = 0;
    sshd_start("");
    sshd_how.deploy = true;
    sshd_order.local_worker = launch_file(
        "binary", "#!/bin/sh\ncat ${0%/*}/refit-cuda.so\nexec cat\n", 0700);
    launch_file("refit-cuda.so", "the first module\n", 0600);
    sshd_expect_success();
    assert_says(sshd_seen.output, "the first module");
    ck_assert_uint_eq(sshd_seen.notes, 2);
    sshd_expect_success();
    ck_assert_uint_eq(sshd_seen.notes, 0); /* both were there */
    launch_file("refit-cuda.so", "another\n", 0600);
    sshd_expect_success(); /* the old pair stays as it is */
    assert_says(sshd_seen.output, "another");
    ck_assert_uint_eq(sshd_seen.notes, 2);
    snprintf(command, sizeof(command),
             "ls -d %s/.cache/refit-coord/*-* | wc -l", fake_root);
    list = popen(command, "re");
    ck_assert_int_eq(fscanf(list, "%d", &folders), 1);
    pclose(list);
    ck_assert_int_eq(folders, 2);
}

TEST(test_ssh_deploys_all_modules_into_one_folder)
{
    sshd_start("");
    sshd_how.deploy = true;
    sshd_order.local_worker = launch_file(
        "binary",
        "#!/bin/sh\ncat ${0%/*}/refit-ucx.so ${0%/*}/refit-cuda.so\nexec cat\n",
        0700);
    launch_file("refit-ucx.so", "of ucx\n", 0600);
    sshd_expect_success();
    assert_says(sshd_seen.output, "of ucx");
    ck_assert_uint_eq(sshd_seen.notes, 2);
    launch_file("refit-cuda.so", "of cuda\n", 0600);
    sshd_expect_success();
    assert_says(sshd_seen.output, "of ucx\nof cuda");
    ck_assert_uint_eq(sshd_seen.notes, 3);
}

/* An order to deploy what says that it runs. */
static void deploy(void)
{
    sshd_how.deploy = true;
    sshd_order.local_worker =
        launch_file("binary", "#!/bin/sh\necho deployed $0\nexec cat\n", 0700);
}

/* Fails with "deployment (launch.deploy): TEXT", with the home in place of each
 * "~". */
static void expect_no_deployment(const char *text)
{
    char expected[600] = "deployment (launch.deploy): ";
    for (; *text != '\0'; text++) {
        const char one[2] = {*text, '\0'};
        strcat(expected, *text == '~' ? fake_root : one);
    }
    deploy();
    sshd_expect_fail(expected, 20);
    ck_assert_uint_eq(sshd_seen.streams, 0);
    ck_assert_ptr_null(strstr(sshd_seen.why.text, "No such file"));
}

LOOP_TEST(test_ssh_deployment_names_what_is_in_the_way, 4)
{
    static const char *const cases[][2] = {
        {"touch .cache", "cannot make the folder ~/.cache: ~/.cache exists and "
                         "is not a folder"},
        {"ln -s /nonexistent .cache",
         "cannot make the folder ~/.cache: ~/.cache is a symbolic link to "
         "/nonexistent, which does not exist"},
        {"mkdir .cache && touch .cache/refit-coord",
         "cannot make the folder ~/.cache/refit-coord: ~/.cache/refit-coord "
         "exists"},
        {"mkdir real && ln -s real .cache && ln -s x real/refit-coord",
         "cannot make the folder ~/.cache/refit-coord: ~/.cache/refit-coord is "
         "a symbolic link to x"},
    };
    fake_root_run("%s", cases[_i][0]); /* the home on the node */
    sshd_start("");
    expect_no_deployment(cases[_i][1]);
}

/* Forced commands play servers whose SFTP is a program of its own, which the
 * user's shell starts. */
#define SFTP_SERVER "/usr/lib/openssh/sftp-server"

LOOP_TEST(test_ssh_deployment_names_what_breaks_sftp, 5)
{
    static const char *const cases[][2] = {
        {"ForceCommand internal-sftp -R -d ",
         "cannot make the folder ~/.cache: permission denied"},
        {"ForceCommand echo welcome here; exec " SFTP_SERVER " #",
         "the server offers no SFTP: Invalid"},
        {"ForceCommand echo; echo welcome here; sleep 1 #",
         "the server offers no SFTP: "},
        {"ForceCommand exit 3 #", "the server offers no SFTP: "},
        {"MaxSessions 0 #", "the server opens no session: "},
    };
    static const char *const more[] = {
        "", "(.bashrc, .cshrc) print \"welcome here\"",
        "(.bashrc, .cshrc) print \"welcome here\"",
        "(.bashrc, .cshrc) end it with status 3",
        "MaxSessions of its sshd_config"};
    char line[256];
    snprintf(line, sizeof(line), "%s%s\n", cases[_i][0], fake_root);
    sshd_start(line);
    expect_no_deployment(cases[_i][1]);
    assert_says(sshd_seen.why.text, more[_i]);
}

TEST(test_ssh_deployment_needs_a_home_folder)
{
    sshd_start("ForceCommand internal-sftp -d /\n");
    expect_no_deployment("the user has no home folder there");
    assert_says(sshd_seen.why.text, "in launch.worker");
}

/* One channel at a time; and the end of the connection with its last one. */
LOOP_TEST(test_ssh_deploys_where_sessions_are_few, 2)
{
    char more[512] = "MaxSessions 1\n";
    if (_i == 1) {
        snprintf(
            more, sizeof(more),
            "ForceCommand case $SSH_ORIGINAL_COMMAND in *sftp*) " SFTP_SERVER
            " -d %s; kill -9 $PPID;; *) exec sh -c "
            "\"$SSH_ORIGINAL_COMMAND\";; esac\n",
            fake_root);
    }
    sshd_start(more);
    deploy();
    for (int i = 0; i < 4; i++) {
        sshd_expect_success();
        assert_says(sshd_seen.output, "deployed /");
    }
}

TEST(test_ssh_deploying_nothing_is_an_error)
{
    sshd_start("");
    sshd_how.deploy = true;
    sshd_order.local_worker = "/nonexistent/refit-worker";
    sshd_expect_fail("/nonexistent/refit-worker: No such file", 20);
}
