/* Our own look at the ssh config: key files and settings not honoured. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/launch_ssh.h"
#include "launch_fixture.h"

static struct rf_ssh_scan scan;

static void look(const char *text, const char *host)
{
    rf_ssh_scan_config(launch_file("config", text, 0600), host, "rl", &scan);
}

static void setup(void)
{
    launch_setup();
    memset(&scan, 0, sizeof(scan));
}

static void teardown(void)
{
    rf_ssh_scan_free(&scan);
    launch_teardown();
}

START_TEST(test_ssh_config_patterns_select_the_block)
{
    static const struct {
        const char *block;
        bool applies;
    } cases[] = {
        {"Host gpu-a", true},
        {"Host GPU-*", true},
        {"host=gpu-?", true},
        {"Host other gpu-*", true},
        {"Host gpu-??", false},
        {"Host gpu", false},
        {"Host *a*", true},
        {"Host * !gpu-a", false},
        {"Host !gpu-b *", true},
        {"Host !gpu-b", false},
        {"Match all", true},
        {"Match host gpu-*,other user rl", true},
        {"Match originalhost gpu-a", true},
        {"Match user root", false},
        {"Match exec \"true\"", false}, /* left to libssh */
        {"Match", false},
    };
    char text[256];
    ck_assert_uint_eq(RF_ARRAY_SIZE(cases), 16);
    snprintf(text, sizeof(text), "%s\n  IdentityFile /k\n", cases[_i].block);
    look(text, "gpu-a");
    ck_assert_uint_eq(scan.n_identities, cases[_i].applies ? 1 : 0);
}
END_TEST

START_TEST(test_ssh_config_key_files_keep_their_order)
{
    char *home = rf_ssh_home(), *expected = NULL;
    look("IdentityFile /first\n# IdentityFile /comment\n"
         "\tIdentityFile = \"/with space\"  \r\n"
         "IdentityFile /%h/%r/%%\nIdentityFile /first\nIdentityFile none\n"
         "IdentityFile /%z\nIdentityFile ~/own\nIdentityAgent /run/agent\n"
         "IdentityAgent /run/other\n",
         "gpu-a");
    expected = rf_ssh_expand_home("~/own");
    ck_assert_uint_eq(scan.n_identities, 4);
    ck_assert_str_eq(scan.identities[0], "/first");
    ck_assert_str_eq(scan.identities[1], "/with space");
    ck_assert_str_eq(scan.identities[2], "/gpu-a/rl/%");
    ck_assert_str_eq(scan.identities[3], expected);
    ck_assert_str_eq(scan.identity_agent, "/run/agent");
    ck_assert_int_eq(strncmp(expected, home, strlen(home)), 0);
    free(expected);
    free(home);
}
END_TEST

START_TEST(test_ssh_config_keeps_only_so_many_key_files)
{
    char text[2048] = "";
    for (int i = 0; i < 40; i++) {
        char line[64];
        snprintf(line, sizeof(line), "IdentityFile /key%d\n", i);
        strcat(text, line);
    }
    look(text, "gpu-a");
    ck_assert_uint_eq(scan.n_identities, RF_SSH_IDENTITIES_MAX);
}
END_TEST

START_TEST(test_ssh_config_settings_not_honoured_are_listed_once)
{
    look("Host gpu-*\n HostKeyAlias x\n CertificateFile /c\n CertificateFile "
         "/d\n IdentitiesOnly no\n Port 22\nHost other\n BindAddress 1.1.1.1\n",
         "gpu-a");
    ck_assert_str_eq(scan.ignored, "HostKeyAlias, CertificateFile");
}
END_TEST

START_TEST(test_ssh_config_includes_are_followed_but_not_for_ever)
{
    char text[512];
    const char *more = launch_file(
        "more", "IdentityFile /more\nHost other\nIdentityFile /no\n", 0600);
    snprintf(text, sizeof(text),
             "Host other\n  Include %s\nHost gpu-a\n  Include %s\n"
             "  IdentityFile /after\n  Include %s/config\n",
             more, more, launch_folder);
    look(text, "gpu-a");
    ck_assert_uint_eq(scan.n_identities, 2);
    ck_assert_str_eq(scan.identities[0], "/more");
    ck_assert_str_eq(scan.identities[1], "/after");
}
END_TEST

START_TEST(test_ssh_config_that_is_missing_or_junk_is_empty)
{
    if (_i == 0) {
        rf_ssh_scan_config("/nonexistent/config", "gpu-a", NULL, &scan);
    } else {
        look("=\n\n \t\nIdentityFile\nHost\nMatch host\nIdentityFile \"\"\n"
             "\x01\xff\nHost gpu-a",
             "gpu-a");
    }
    ck_assert_uint_eq(scan.n_identities, 0);
    ck_assert_str_eq(scan.ignored, "");
}
END_TEST

Suite *test_launch_ssh_config_suite(void);
Suite *test_launch_ssh_config_suite(void)
{
    Suite *suite = suite_create("launch_ssh_config");
    TCase *tests = tcase_create("config");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_ssh_config_patterns_select_the_block, 0,
                        16);
    tcase_add_test(tests, test_ssh_config_key_files_keep_their_order);
    tcase_add_test(tests, test_ssh_config_keeps_only_so_many_key_files);
    tcase_add_test(tests,
                   test_ssh_config_settings_not_honoured_are_listed_once);
    tcase_add_test(tests,
                   test_ssh_config_includes_are_followed_but_not_for_ever);
    tcase_add_loop_test(tests, test_ssh_config_that_is_missing_or_junk_is_empty,
                        0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
