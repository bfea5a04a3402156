/* The launcher `ssh` against servers that do not work and through the ssh
 * config. */
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/coordinator/launch/ssh/launch_sshd.h"
#include "tests/unit/unit.h"

static struct seen many[32];

/* --- Bad servers ---------------------------------------------------------- */

SSHD_TESTS

LOOP_TEST(test_ssh_silent_or_dripping_server_is_given_up_in_time, 3)
{
    static const char *const texts[] = {"", "SSH-2.0-slow_server_of_many_words",
                                        "SSH-2.0-x\r\n"};
    int64_t started = rf_now_ns();
    sshd_talker(texts[_i], _i == 1 ? 300 : 0, true);
    sshd_how.timeout_s = 2;
    sshd_expect_fail("within 2 s (launch.timeout_s)", 10);
    ck_assert_int_eq(sshd_seen.why.status, RF_ERR_TIMEOUT);
    ck_assert_int_ge(rf_now_ns() - started, 19 * RF_NS_PER_S / 10);
    ck_assert_int_lt(rf_now_ns() - started, 5 * RF_NS_PER_S);
}

TEST(test_ssh_garbage_instead_of_a_banner_is_shown)
{
    sshd_talker("HTTP/1.0 400 Bad \x1b Request\r\n", 0, false);
    sshd_expect_fail("it sent \"HTTP/1.0 400 Bad ? Request\"", 10);
    ck_assert_uint_eq(sshd_seen.notes, 0);
}

TEST(test_ssh_closed_port_says_so)
{
    close(sshd_listen(&sshd_node.port));
    sshd_expect_fail("Connection refused", 10);
}

TEST(test_ssh_unknown_name_says_so)
{
    sshd_node.hostname = "no-such-host.invalid";
    sshd_expect_fail("cannot resolve no-such-host.invalid", 20);
    assert_says(sshd_seen.why.text, "nodes[0].hostname");
}

TEST(test_ssh_shedding_server_is_tried_four_times)
{
    sshd_talker("Exceeded MaxStartups\r\n", 0, false);
    sshd_expect_fail("after 4 tries", 15);
    ck_assert_uint_eq(sshd_seen.notes, 3);
}

TEST(test_ssh_start_limit_of_the_server_is_survived)
{
    const unsigned n = 3;
    sshd_start("MaxStartups 1:100:1\n");
    sshd_how.timeout_s = 30;
    for (unsigned i = 0; i < n; i++) {
        seen_start(&many[i], &sshd_order);
    }
    await_stream(many, n, 40);
    for (unsigned i = 0; i < n; i++) {
        seen_close_stream(&many[i]);
    }
    await_end(many, n, 20);
}

LOOP_TEST(test_ssh_bad_names_are_errors_of_start, 3)
{
    static const struct rf_launch_ops_cb none;
    struct rf_launch *launch = NULL;
    if (_i == 0) {
        sshd_node.hostname = "-oProxyCommand=x";
    } else if (_i == 1) {
        sshd_node.user = "root -x";
    } else {
        sshd_how.worker = "worker; reboot";
    }
    ck_assert_int_eq(rf_launcher_ssh.start(&launch_loop, &sshd_order, &none,
                                           NULL, &launch, NULL),
                     RF_ERR_CONFIG);
    ck_assert_ptr_null(launch);
}

/* --- Configuration -------------------------------------------------------- */

TEST(test_ssh_config_is_honoured_and_its_limits_are_told)
{
    char text[1024];
    sshd_start("");
    snprintf(text, sizeof(text),
             "Host other\n  Port 1\nHost node-?\n  HostName 127.0.0.1\n"
             "  Port %u\n  IdentityFile /nonexistent\n  IdentityFile %s\n"
             "  BindAddress 127.0.0.1\n  SetEnv A=1\n",
             sshd_node.port, sshd_node.identity);
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = launch_file("config", text, 0600);
    sshd_node = (struct rf_node_config){.name = "node-a"};
    sshd_expect_success();
    assert_says(sshd_seen.noted, "options ignored: BindAddress, SetEnv");
}

TEST(test_ssh_missing_config_file_is_an_error)
{
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = "/nonexistent/config";
    sshd_node.port = 1;
    sshd_expect_fail("/nonexistent/config", 10);
    ck_assert_int_eq(sshd_seen.why.status, RF_ERR_CONFIG);
}

static void use_proxy(const char *command)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "Host *\n  IdentityFile %s\n  UserKnownHostsFile %s/known_hosts\n"
             "Host 127.0.0.1\n  ProxyCommand %s\n"
             "Host jump\n  HostName 127.0.0.1\n  Port %u\n",
             sshd_node.identity, fake_root, command, sshd_node.port);
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = launch_file("config", text, 0600);
}

static void expect_through_jump_host(void)
{
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    ck_assert_ptr_null(
        sshd_seen.ops->head_address(sshd_seen.launch)); /* unknown */
    seen_write(&sshd_seen, "through\n");
    await_output(&sshd_seen, "through\n", 10);
    seen_close_stream(&sshd_seen);
    await_end(&sshd_seen, 1, 10);
    ck_assert_int_eq(sshd_seen.status, 0);
}

TEST(test_ssh_goes_through_a_jump_host)
{
    char command[256];
    sshd_start("");
    snprintf(command, sizeof(command), "ssh -F %s/config -W %%h:%%p jump",
             fake_root);
    use_proxy(command);
    expect_through_jump_host();
}

/* The jump host is an alias of that file, too. */
TEST(test_ssh_jump_host_is_looked_up_in_the_given_config)
{
    char text[1024];
    sshd_start("");
    snprintf(text, sizeof(text),
             "Host node-a jump\n  HostName 127.0.0.1\n  Port %u\n"
             "  IdentityFile %s\n  UserKnownHostsFile %s/known_hosts\n"
             "Host node-a\n  ProxyJump jump\n",
             sshd_node.port, sshd_node.identity, fake_root);
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = launch_file("it's a config", text, 0600);
    sshd_node = (struct rf_node_config){.name = "node-a"};
    expect_through_jump_host();
}

static void use_alias(const char *alias)
{
    char text[256];
    snprintf(text, sizeof(text), "Host *\n  HostKeyAlias %s\n", alias);
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = launch_file("config", text, 0600);
}

/* Also one that the Domain Name System would not have. */
LOOP_TEST(test_ssh_host_key_is_known_under_its_alias, 3)
{
    static const char *const names[] = {"cluster-node", "node_a", "Node_-B.c_"};
    sshd_start("");
    use_alias(names[_i]);
    sshd_know(names[_i], "host_key"); /* whatever the port */
    sshd_expect_success();
    sshd_run("/usr/bin/ssh-keygen", "-q", "-H", "-f", sshd_how.known_hosts,
             NULL);
    sshd_expect_success();
}

/* sshd shows another kind of key unless it is asked for the known one. */
TEST(test_ssh_known_kind_of_key_of_an_alias_is_asked_for)
{
    const char *path = fake_root_path("second_key");
    char more[160];
    sshd_run("/usr/bin/ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", path,
             NULL);
    snprintf(more, sizeof(more), "HostKey %s\n", path);
    sshd_start(more);
    use_alias("cluster-node");
    sshd_know("cluster-node", "second_key");
    sshd_expect_success();
}

TEST(test_ssh_unknown_alias_is_named_with_what_to_do)
{
    char hint[256];
    sshd_start("");
    use_alias("cluster-node");
    /* The address is known, but it is not asked for. */
    sshd_expect_fail("host key of cluster-node is unknown", 20);
    snprintf(hint, sizeof(hint),
             "ssh-keyscan -p %u 127.0.0.1 | sed 's/^[^ ]*/cluster-node/' >> %s",
             sshd_node.port, sshd_how.known_hosts);
    assert_says(sshd_seen.why.text, hint);
    sshd_how.accept_new = true;
    sshd_expect_success();
    ck_assert_int_eq(sshd_count("known_hosts", "cluster-node ssh-ed25519 "), 1);
    sshd_how.accept_new = false;
    sshd_expect_success();
}

TEST(test_ssh_alias_that_is_no_name_is_an_error)
{
    sshd_start("");
    use_alias("root@other,host");
    sshd_expect_fail("HostKeyAlias", 20);
    ck_assert_int_eq(sshd_seen.why.status, RF_ERR_CONFIG);
}

TEST(test_ssh_failing_proxy_is_quoted)
{
    sshd_node.port = 1;
    use_proxy("sh -c 'echo no route to jump >&2; exit 1'");
    sshd_expect_fail("connection closed before the SSH banner", 20);
    assert_says(sshd_seen.why.text, "ProxyCommand");
    assert_says(sshd_seen.noted, "proxy: no route to jump");
}

TEST(test_ssh_words_of_a_proxy_instead_of_a_banner_are_shown)
{
    sshd_node.port = 1;
    use_proxy("echo HTTP/1.1 403 Forbidden; sleep 1");
    sshd_expect_fail("not an SSH server: it sent \"HTTP/1.1 403 Forbidden\" "
                     "(ProxyCommand of the ssh config?)",
                     20);
    ck_assert_uint_eq(sshd_seen.notes, 0); /* no second try */
}

TEST(test_ssh_stubborn_proxy_is_killed)
{
    int64_t started = rf_now_ns();
    char text[128];
    sshd_node.port = 1;
    snprintf(text, sizeof(text),
             "sh -c 'trap \"\" TERM HUP; echo $$ > %s/pid; sleep 300; sleep "
             "300'",
             fake_root);
    use_proxy(text);
    sshd_how.timeout_s = 1;
    sshd_expect_fail("", 10);
    ck_assert_int_lt(rf_now_ns() - started, 6 * RF_NS_PER_S);
    await_gone(launch_pid("pid"));
}
