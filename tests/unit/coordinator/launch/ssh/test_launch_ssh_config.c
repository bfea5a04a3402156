/* Our own look at the ssh config: key files and settings not honoured. */
#include <check.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"

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
    look("Host gpu-*\n AddressFamily inet\n CertificateFile /c\n "
         "CertificateFile "
         "/d\n IdentitiesOnly no\n Port 22\nHost other\n BindAddress 1.1.1.1\n",
         "gpu-a");
    ck_assert_str_eq(scan.ignored, "AddressFamily, CertificateFile");
}
END_TEST

/* Host lines are for the name that was asked for, Match host for the one that
 * it stands for. */
START_TEST(test_ssh_config_first_value_counts_and_host_names_stay)
{
    look("Host gpu-a\n HostName %h.example\n Port 2222\n"
         "Host gpu-a.example\n User nobody\n HostKeyAlias none\n"
         "Match host gpu-a\n User nobody\n"
         "Match host gpu-a.example originalhost gpu-a\n User somebody\n"
         "Host gpu-*\n HostName other\n Port 23\n User last\n"
         " ProxyJump a,b@c:24\n ProxyCommand nc %h %p\n HostKeyAlias rack\n"
         " HostKeyAlias other\nHost *\n ProxyJump none\n",
         "gpu-a");
    ck_assert_str_eq(scan.host_name, "gpu-a.example");
    ck_assert_uint_eq(scan.port, 2222);
    ck_assert_str_eq(scan.user, "somebody");
    ck_assert_str_eq(scan.proxy_jump, "a,b@c:24");
    ck_assert_ptr_null(scan.proxy_command);
    ck_assert_str_eq(scan.host_key_alias, "rack");
    ck_assert_str_eq(scan.ignored, "");
}
END_TEST

/* What ssh itself makes of launch_file "config"; false: no ssh here. */
static bool ssh_says(const char *user, const char *key, char out[256])
{
    char *command = rf_xasprintf(
        "ssh -G -F %s/config %s%s gpu-a 2>/dev/null | sed -n 's/^%s //p'",
        launch_folder, user != NULL ? "-l " : "", user != NULL ? user : "",
        key);
    FILE *answer = popen(command, "r");
    ck_assert_ptr_nonnull(answer);
    out[0] = '\0';
    (void)!fgets(out, 256, answer);
    out[strcspn(out, "\n")] = '\0';
    free(command);
    pclose(answer);
    return out[0] != '\0';
}

static void check_place(const char *text, const char *user, const char *host,
                        const char *as)
{
    char said[256];
    rf_ssh_scan_config(launch_file("config", text, 0600), "gpu-a", user, &scan);
    ck_assert_pstr_eq(scan.host_name, host);
    ck_assert_pstr_eq(scan.user, as);
    if (host != NULL && ssh_says(user, "hostname", said)) {
        ck_assert_str_eq(host, said);
    }
    if (as != NULL && user == NULL && ssh_says(NULL, "user", said)) {
        ck_assert_str_eq(as, said);
    }
}

/* NULL: libssh's value counts. */
START_TEST(test_ssh_config_blocks_left_to_libssh_keep_what_they_set)
{
    static const struct {
        const char *text, *host, *as;
    } cases[] = {
        {"Match exec \"true\"\n HostName x\nHost *\n HostName y\n User u\n",
         NULL, "u"},
        {"Host *\n HostName y\n User u\nMatch exec \"true\"\n HostName x\n",
         "y", "u"},
        {"Match exec \"test 1 = 1\" host gpu-a\n User x\nHost *\n User y\n",
         NULL, NULL},
        {"Match host other exec \"true\"\n User x\nHost *\n User y\n", NULL,
         "y"},
        {"Match final\n User x\nHost *\n User y\n", NULL, "y"},
        {"Host *\n User y\nMatch final\n User x\n", NULL, "y"},
        {"Match exec \"true\"\n HostName x\nMatch host gpu-a\n User u\n"
         "Host *\n User y\n",
         NULL, NULL},
        {"Match exec \"true\"\n User x\nMatch user x\n HostName h\n"
         "Host *\n HostName y\n",
         NULL, NULL},
        {"Match !host gpu-a\n User x\nMatch !user nobody\n User y\n", NULL,
         "y"},
    };
    ck_assert_uint_eq(RF_ARRAY_SIZE(cases), 9);
    check_place(cases[_i].text, NULL, cases[_i].host, cases[_i].as);
}
END_TEST

START_TEST(test_ssh_config_a_proxy_left_to_libssh_stays_its)
{
    look("Match exec \"true\"\n ProxyCommand x\n Port 1\nHost *\n"
         " ProxyJump y\n ProxyCommand y\n Port 2\n IdentityFile /k\n",
         "gpu-a");
    ck_assert_ptr_null(scan.proxy_jump);
    ck_assert_ptr_null(scan.proxy_command);
    ck_assert_uint_eq(scan.port, 0);
    ck_assert_uint_eq(scan.n_identities, 1);
}
END_TEST

START_TEST(test_ssh_config_match_knows_the_user_so_far_and_the_local_one)
{
    const struct passwd *me = getpwuid(getuid());
    char *text;
    ck_assert_ptr_nonnull(me);
    text = rf_xasprintf("Match localuser nobody-else\n HostName n\n"
                        "Match user rl,%s\n HostName h\n"
                        "Match localuser %s\n User found\n"
                        "Match user found\n HostName f\n",
                        _i == 0 ? me->pw_name : "x", me->pw_name);
    check_place(text, NULL, _i == 0 ? "h" : "f", "found");
    rf_ssh_scan_free(&scan);
    check_place(text, "rl", "h", "found");
    free(text);
}
END_TEST

START_TEST(test_ssh_config_jumps_become_a_proxy_command)
{
    static const struct {
        const char *config, *jumps, *command;
    } cases[] = {
        {NULL, "jump", "ssh -W '[%h]:%p' 'ssh://jump'"},
        {"/a b/c", "rl@jump:24",
         "ssh -F '/a b/c' -W '[%h]:%p' 'ssh://rl@jump:24'"},
        {"/it's/5%", "a,ssh://b,[::1]:22",
         "ssh -F '/it'\\''s/5%%' -J 'a,ssh://b' -W '[%h]:%p' 'ssh://[::1]:22'"},
        {NULL, "a,ssh://b", "ssh -J 'a' -W '[%h]:%p' 'ssh://b'"},
    };
    static const char *const bad[] = {"",    "a,",  ",a",   "-oX=y", "a,-b",
                                      "a b", "a;b", "$(a)", "a'b",   "%h"};
    struct rf_err err = {0};
    char *command = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        ck_assert_int_eq(rf_ssh_jump_command(cases[i].config, cases[i].jumps,
                                             &command, &err),
                         RF_OK);
        ck_assert_str_eq(command, cases[i].command);
        free(command);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        ck_assert_int_eq(rf_ssh_jump_command(NULL, bad[i], &command, &err),
                         RF_ERR_CONFIG);
    }
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
    TCase *tests = tcase_create("launch_ssh_config");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_ssh_config_patterns_select_the_block, 0,
                        16);
    tcase_add_test(tests, test_ssh_config_key_files_keep_their_order);
    tcase_add_test(tests, test_ssh_config_keeps_only_so_many_key_files);
    tcase_add_test(tests,
                   test_ssh_config_settings_not_honoured_are_listed_once);
    tcase_add_test(tests,
                   test_ssh_config_first_value_counts_and_host_names_stay);
    tcase_add_loop_test(
        tests, test_ssh_config_blocks_left_to_libssh_keep_what_they_set, 0, 9);
    tcase_add_test(tests, test_ssh_config_a_proxy_left_to_libssh_stays_its);
    tcase_add_loop_test(
        tests, test_ssh_config_match_knows_the_user_so_far_and_the_local_one, 0,
        2);
    tcase_add_test(tests, test_ssh_config_jumps_become_a_proxy_command);
    tcase_add_test(tests,
                   test_ssh_config_includes_are_followed_but_not_for_ever);
    tcase_add_loop_test(tests, test_ssh_config_that_is_missing_or_junk_is_empty,
                        0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
