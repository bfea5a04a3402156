/* What is taken of the ssh config: what ssh makes of it. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

static struct rf_launch_config how;
static struct rf_node_config node;
static struct rf_ssh_job *job;
static struct rf_ssh_settings settings;
static struct rf_err err;

static void setup(void)
{
    launch_setup();
    how = (struct rf_launch_config){.worker = "w", .use_ssh_config = true};
    node = (struct rf_node_config){.name = "gpu-a"};
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    if (job != NULL) {
        rf_ssh_settings_free(&settings);
        rf_ssh_job_release(job);
        job = NULL;
    }
    launch_teardown();
}

/* Reads a config of that text for `node`. */
static enum rf_status look(const char *text)
{
    teardown();
    launch_setup();
    how.ssh_config = text != NULL ? launch_file("config", text, 0600) : NULL;
    job = rf_ssh_job_create(
        &(struct rf_launch_order){.settings = &how, .node = &node});
    rf_ssh_set_deadline(job, 20);
    return rf_ssh_read_config(job, &settings, &err);
}

static void expect_look(const char *text)
{
    assert_ok(look(text), err);
}

static void expect_texts(const struct rf_ssh_texts *texts, const char *expected)
{
    char all[1024] = "";
    for (size_t i = 0; i < texts->n; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? "|" : "",
                 texts->list[i]);
    }
    ck_assert_str_eq(all, expected);
}

static bool was_noted(const char *text)
{
    for (const struct rf_ssh_event *e = job->first; e != NULL; e = e->next) {
        if (e->text != NULL && strstr(e->text, text) != NULL) {
            return true;
        }
    }
    return false;
}

FIXTURE(setup, teardown)
LIMIT(60)

TEST(test_ssh_config_words_may_be_followed_by_a_comment)
{
    expect_look("Host gpu-a # the first\n  HostName 127.0.0.1 # login\n"
                "  User rl # me\n  Port 2222 # theirs\n"
                "  IdentityFile /k # key\n"
                "Match all # for all\n  HostKeyAlias rack # name\n");
    ck_assert_str_eq(settings.host_name, "127.0.0.1");
    ck_assert_str_eq(settings.user, "rl");
    ck_assert_uint_eq(settings.port, 2222);
    expect_texts(&settings.identities, "/k");
    ck_assert_str_eq(settings.host_key_alias, "rack");
}

TEST(test_ssh_config_lines_may_be_long)
{
    char *text =
        rf_xasprintf("Host %0*d gpu-a\n  UserKnownHostsFile /one /two\n"
                     "Match exec \"false %0*d\"\n  ProxyCommand touch ran\n"
                     "Host *\n  User rl\n",
                     2000, 0, 2000, 0);
    expect_look(text);
    free(text);
    expect_texts(&settings.known_hosts, "/one|/two");
    ck_assert_ptr_null(settings.proxy_command);
    ck_assert_str_eq(settings.user, "rl");
}

TEST(test_ssh_config_match_blocks_may_set_files_of_known_hosts)
{
    node.user = "rl";
    expect_look("Match originalhost gpu-a user rl\n"
                "  UserKnownHostsFile ~/own /with blank/too\n"
                "  GlobalKnownHostsFile /global\n"
                "  KnownHostsCommand /bin/echo %H\n");
    ck_assert_uint_eq(settings.known_hosts.n, 2);
    ck_assert_str_eq(settings.known_hosts.list[1], "/with blank/too");
    expect_texts(&settings.global_known_hosts, "/global");
    ck_assert_str_eq(settings.known_hosts_command, "/bin/echo %H");
}

TEST(test_ssh_config_known_hosts_of_the_cluster_file_are_alone)
{
    how.known_hosts = "/mine";
    expect_look("UserKnownHostsFile /one\nKnownHostsCommand /bin/false\n");
    expect_texts(&settings.known_hosts, "/mine");
    expect_texts(&settings.global_known_hosts, "");
    ck_assert_ptr_null(settings.known_hosts_command);
}

TEST(test_ssh_config_first_value_counts_and_the_cluster_file_before_it)
{
    static const char text[] =
        "Match exec \"true\"\n  User first\n"
        "Host gpu-a\n  HostName %h.example\n  Port 2222\n  User second\n"
        "Host gpu-a.example\n  HostKeyAlias none\n"
        "Match host gpu-a.example originalhost gpu-a\n  ProxyJump a,b@c:24\n"
        "Host gpu-*\n  Port 23\n  ProxyCommand nc %h %p\n";
    expect_look(text);
    ck_assert_str_eq(settings.host_name, "gpu-a.example");
    ck_assert_str_eq(settings.user, "first");
    ck_assert_uint_eq(settings.port, 2222);
    ck_assert_str_eq(settings.proxy_jump, "a,b@c:24");
    ck_assert_ptr_null(settings.proxy_command);
    ck_assert_ptr_null(settings.host_key_alias);
    node.user = "rl";
    node.port = 24;
    expect_look(text);
    ck_assert_str_eq(settings.user, "rl");
    ck_assert_uint_eq(settings.port, 24);
}

TEST(test_ssh_config_key_files_keep_their_order)
{
    AUTO_FREE char *own = rf_ssh_expand_home("~/own");
    AUTO_FREE char *expected =
        rf_xasprintf("/first|/with space|/gpu-a/rl/%%|%s|/var/x", own);
    node.user = "rl";
    setenv("RF_TEST_PLACE", "/var", 1);
    expect_look("IdentityFile /first\n\tIdentityFile = \"/with space\"  \r\n"
                "IdentityFile /%h/%r/%%\nIdentityFile ~/own\n"
                "IdentityFile ${RF_TEST_PLACE}/x\nIdentityAgent /run/agent\n"
                "CertificateFile /%h/c\nCertificateFile /d\n");
    expect_texts(&settings.identities, expected);
    expect_texts(&settings.certificates, "/gpu-a/c|/d");
    ck_assert_str_eq(settings.identity_agent, "/run/agent");
}

TEST(test_ssh_config_settings_not_honoured_are_told_once)
{
    expect_look("Host gpu-*\n  AddressFamily inet\n  SetEnv A=1\n"
                "  SetEnv B=2\n  IdentitiesOnly no\n  Port 22\n"
                "Host other\n  BindAddress 1.1.1.1\n");
    ck_assert_str_eq(settings.ignored, "AddressFamily, SetEnv");
    ck_assert(was_noted("options ignored: AddressFamily, SetEnv"));
}

/* Of lists it keeps what it knows, and what ssh has by itself is well. */
TEST(test_ssh_config_algorithms_are_handed_to_libssh)
{
    ssh_session session = ssh_new();
    AUTO_FREE char *answer =
        rf_xstrdup("hostname h\nport 22\nciphers unheard-of\n");
    expect_look("Host *\n");
    assert_ok(rf_ssh_set_options(&settings, session, &err), err);
    expect_look("Ciphers aes128-ctr\nCompression yes\n");
    assert_ok(rf_ssh_set_options(&settings, session, &err), err);
    rf_ssh_settings_free(&settings);
    assert_ok(rf_ssh_take_config(answer, &settings, &err), err);
    assert_fails(rf_ssh_set_options(&settings, session, &err), RF_ERR_CONFIG,
                 err, "ciphers of the ssh config: ");
    ssh_free(session);
}

TEST(test_ssh_config_that_ssh_refuses_is_an_error_with_its_words)
{
    ck_assert_int_eq(look("Host *\n  NoSuchSetting x\n"), RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "line 2") != NULL &&
                      strstr(err.text, "nosuchsetting") != NULL,
                  "%s", err.text);
    ck_assert_int_eq(look("Host *\n  IdentityFile /%z\n"), RF_ERR_CONFIG);
    assert_says(err.text, "%z");
}

/* A PATH without ssh; then nothing else is known of the host. */
TEST(test_ssh_config_without_ssh_is_not_read_and_that_is_told)
{
    AUTO_FREE char *home = rf_ssh_expand_home("~/.ssh/known_hosts");
    setenv("PATH", "/nonexistent", 1);
    expect_look(NULL);
    ck_assert(was_noted("ssh config not read: ssh(1) not found"));
    ck_assert_str_eq(settings.host_name, "gpu-a");
    ck_assert_uint_eq(settings.port, 22);
    expect_texts(&settings.known_hosts, home);
    ck_assert_int_eq(look("Host *\n"), RF_ERR_UNSUPPORTED);
    how.use_ssh_config = false;
    expect_look(NULL);
    ck_assert(!was_noted("not read"));
}

/* Within the launch's time, or at once when it is stopped. */
TEST(test_ssh_config_that_hangs_is_given_up)
{
    int64_t started = rf_now_ns();
    char text[256];
    snprintf(text, sizeof(text),
             "Match exec \"echo $$ >%s/pid; exec sleep 300\"\n  User x\n",
             fake_root);
    how.ssh_config = launch_file("config", text, 0600);
    job = rf_ssh_job_create(
        &(struct rf_launch_order){.settings = &how, .node = &node});
    rf_ssh_set_deadline(job, 2);
    assert_fails(rf_ssh_read_config(job, &settings, &err), RF_ERR_TIMEOUT, err,
                 "Match exec");
    ck_assert_int_lt(rf_now_ns() - started, 10 * RF_NS_PER_S);
    await_gone(launch_pid("pid"));
    rf_ssh_settings_free(&settings);
    rf_ssh_set_deadline(job, 60);
    atomic_store(&job->stop, RF_SSH_STOP);
    ck_assert_int_eq(rf_ssh_read_config(job, &settings, &err), RF_ERR_ABORTED);
}

/* Root may always start more processes: another user is tried in its place. */
TEST(test_ssh_that_may_not_start_programs_names_the_limits)
{
    const bool root = getuid() == 0;
    const struct rf_ssh_settings direct = {.host_name = (char[]){"gpu-a"}};
    struct rf_ssh_proxy proxy;
    struct rf_err proxy_err;
    struct rlimit processes;
    enum rf_status read, connected;
    job = rf_ssh_job_create(
        &(struct rf_launch_order){.settings = &how, .node = &node});
    rf_ssh_set_deadline(job, 20);
    ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &processes), 0);
    processes.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &processes), 0);
    ck_assert(!root || setresuid(65534, 65534, 0) == 0);
    read = rf_ssh_read_config(job, &settings, &err);
    connected = rf_ssh_connect_proxy(&direct, "true", &proxy, &proxy_err);
    ck_assert(!root || setresuid(0, 0, 0) == 0);
    ck_assert_int_eq(read, RF_ERR_LAUNCH);
    assert_says(err.text, "pids.max");
    ck_assert_int_eq(connected, RF_ERR_LAUNCH);
    assert_says(proxy_err.text, "pids.max");
}

TEST(test_ssh_config_jumps_become_a_proxy_command)
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
    char *command = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        assert_ok(rf_ssh_jump_command(cases[i].config, cases[i].jumps, &command,
                                      &err),
                  err);
        ck_assert_str_eq(command, cases[i].command);
        free(command);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        ck_assert_int_eq(rf_ssh_jump_command(NULL, bad[i], &command, &err),
                         RF_ERR_CONFIG);
    }
}
