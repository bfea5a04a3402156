/* Host keys and user keys of the launcher `ssh`. */
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/coordinator/launch/ssh/launch_sshd.h"
#include "tests/unit/unit.h"

static struct seen many[32];

/* --- Host keys ------------------------------------------------------------ */

SSHD_TESTS

TEST(test_ssh_unknown_host_key_is_refused_with_its_fingerprint)
{
    sshd_start("");
    launch_file("known_hosts", "", 0600);
    sshd_expect_fail("is unknown", 20);
    assert_says(sshd_seen.why.text, "SHA256:");
    assert_says(sshd_seen.why.text, "ssh-keyscan -p");
    ck_assert_int_eq(sshd_count("known_hosts", ""), 0);
}

static void write_other_key(void)
{
    char line[256];
    snprintf(line, sizeof(line),
             "[127.0.0.1]:%u ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN3o6YFRNc1SW"
             "tk8oVtSJuJ8Vbq6XvbVsJ9ZJmpL1xS7\n",
             sshd_node.port);
    launch_file("known_hosts", line, 0600);
}

LOOP_TEST(test_ssh_changed_host_key_is_refused_whatever_the_config_says, 2)
{
    sshd_start("");
    write_other_key();
    sshd_how.use_ssh_config = true;
    sshd_how.accept_new = _i == 1;
    sshd_how.ssh_config =
        launch_file("config", "Host *\n  StrictHostKeyChecking no\n", 0600);
    sshd_expect_fail("has changed", 20);
    assert_says(sshd_seen.why.text, "ssh-keygen -R '[127.0.0.1]:");
    ck_assert_int_eq(sshd_count("known_hosts", ""), 1);
}

TEST(test_ssh_accept_new_adds_the_key_once)
{
    const unsigned n = 6;
    sshd_start("");
    launch_file("known_hosts", "", 0600);
    sshd_how.accept_new = true;
    for (unsigned i = 0; i < n; i++) {
        seen_start(&many[i], &sshd_order);
    }
    await_stream(many, n, 30);
    for (unsigned i = 0; i < n; i++) {
        seen_close_stream(&many[i]);
    }
    await_end(many, n, 20);
    ck_assert_int_eq(sshd_count("known_hosts", "ssh-ed25519"), 1);
    sshd_how.accept_new = false;
    sshd_expect_success();
}

/* Whether this process waits for a lock on the file. */
static bool waits_for_lock(int fd)
{
    char inode[32], line[256];
    struct stat info;
    FILE *locks = fopen("/proc/locks", "re");
    bool waits = false;
    ck_assert(locks != NULL && fstat(fd, &info) == 0);
    snprintf(inode, sizeof(inode), ":%llu ", (unsigned long long)info.st_ino);
    while (fgets(line, sizeof(line), locks) != NULL) {
        waits |=
            strstr(line, "-> FLOCK") != NULL && strstr(line, inode) != NULL;
    }
    fclose(locks);
    return waits;
}

TEST(test_ssh_accept_new_looks_again_under_the_lock)
{
    int fd;
    sshd_start("");
    fd = open(launch_file("known_hosts", "", 0600), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    sshd_how.accept_new = true;
    sshd_launch();
    while (!waits_for_lock(fd)) {
        uv_run(&launch_loop, UV_RUN_NOWAIT);
        rf_sleep_until_ns(rf_now_ns() + 5 * RF_NS_PER_MS);
    }
    write_other_key();
    close(fd);
    sshd_await_fail("has changed", 20);
    ck_assert_int_eq(sshd_count("known_hosts", ""), 1);
}

/* The fingerprint as ssh-keygen prints it. */
static const char *fingerprint(char out[128])
{
    char command[256];
    FILE *pipe;
    snprintf(command, sizeof(command), "ssh-keygen -l -f %s/host_key.pub",
             fake_root);
    pipe = popen(command, "re");
    ck_assert_int_eq(fscanf(pipe, "%*s %127s", out), 1);
    pclose(pipe);
    return out;
}

LOOP_TEST(test_ssh_pinned_fingerprint_decides_alone, 2)
{
    char text[128];
    sshd_start("");
    if (_i == 0) {
        launch_file("known_hosts", "", 0600); /* is not asked */
        sshd_node.host_key_sha256 = fingerprint(text);
        sshd_expect_success();
        sshd_node.host_key_sha256 = fingerprint(text) + 7;
        sshd_expect_success();
    } else {
        sshd_node.host_key_sha256 =
            "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        sshd_expect_fail("not the one given as nodes[0].host_key_sha256", 20);
    }
}

/* A config that says `more` of the server, whose key is in known_hosts. */
static void use_config(const char *more)
{
    const struct passwd *me = getpwuid(getuid());
    char text[1024];
    ck_assert_ptr_nonnull(me);
    snprintf(text, sizeof(text),
             "Match user %s originalhost 127.0.0.1 # here\n  IdentityFile %s\n"
             "  %s\n",
             me->pw_name, sshd_node.identity, more);
    sshd_how.use_ssh_config = true;
    sshd_how.known_hosts = NULL;
    sshd_how.ssh_config = launch_file("config", text, 0600);
}

LOOP_TEST(test_ssh_host_key_may_be_in_any_file_of_the_config, 3)
{
    static const struct {
        const char *empty, *full; /* what the two files are */
    } settings[] = {
        {"UserKnownHostsFile /nonexistent ", " "},
        {"UserKnownHostsFile ", "\n  GlobalKnownHostsFile "},
        {"UserKnownHostsFile ", "\n  KnownHostsCommand /bin/cat "},
    };
    char more[512];
    sshd_start("");
    launch_file("empty", "# none, and no newline", 0600);
    snprintf(more, sizeof(more), "%s%s/empty%s%s/known_hosts",
             settings[_i].empty, fake_root, settings[_i].full, fake_root);
    use_config(more);
    sshd_expect_success();
    /* What is not there is added to the first. */
    snprintf(more, sizeof(more), "UserKnownHostsFile %s/new %s/empty",
             fake_root, fake_root);
    use_config(more);
    sshd_expect_fail("is unknown", 20);
    sshd_how.accept_new = true;
    sshd_expect_success();
    ck_assert_int_eq(sshd_count("new", " ssh-ed25519 "), 1);
    ck_assert_int_eq(sshd_count("empty", " ssh-ed25519 "), 0);
}

/* It is asked again when there is a key. */
TEST(test_ssh_known_hosts_command_learns_what_it_is_asked_for)
{
    char text[256], more[256];
    sshd_start("");
    snprintf(text, sizeof(text),
             "#!/bin/sh\necho \"$*\" >>%s/asked\n"
             "[ $1 = ORDER ] || echo \"$2 $3 $4\"\n",
             fake_root);
    launch_file("command", text, 0700);
    snprintf(more, sizeof(more),
             "UserKnownHostsFile none\n  KnownHostsCommand %s/command %%I %%H "
             "%%t %%K",
             fake_root);
    use_config(more);
    sshd_expect_success();
    ck_assert_int_eq(sshd_count("asked", "ORDER [127.0.0.1]:"), 1);
    ck_assert_int_eq(sshd_count("asked", "HOSTNAME [127.0.0.1]:"), 1);
    use_config("KnownHostsCommand /bin/false");
    sshd_expect_fail("KnownHostsCommand failed", 20);
}

/* Then advice to add the key to it cannot help. */
LOOP_TEST(test_ssh_host_key_that_no_file_keeps, 2)
{
    static const char *const files[] = {"UserKnownHostsFile none",
                                        "UserKnownHostsFile /dev/null"};
    sshd_start("");
    use_config(files[_i]);
    sshd_expect_fail("no known_hosts file is set", 20);
    assert_says(sshd_seen.why.text,
                "nodes[0].host_key_sha256 or launch.accept_new");
    ck_assert_ptr_null(strstr(sshd_seen.why.text, ">>"));
    sshd_how.accept_new = true;
    sshd_how.deploy = true; /* both sessions, told once */
    sshd_order.local_worker =
        launch_file("binary", "#!/bin/sh\nexec cat\n", 0700);
    sshd_expect_success();
    assert_says(sshd_seen.noted, "but not saved: no known_hosts file is set");
    ck_assert_uint_eq(sshd_seen.notes, 2); /* and the copy */
    ck_assert_int_ne(access("none", F_OK), 0);
}

TEST(test_ssh_folder_of_known_hosts_that_cannot_be_made_says_why)
{
    char more[256], expected[256];
    sshd_start("");
    launch_file("file", "", 0600);
    snprintf(more, sizeof(more), "UserKnownHostsFile %s/file/.ssh/known_hosts",
             fake_root);
    snprintf(expected, sizeof(expected), "%s/file/.ssh: Not a directory",
             fake_root);
    use_config(more);
    sshd_how.accept_new = true;
    sshd_expect_fail(expected, 20);
}

TEST(test_ssh_revoked_host_key_is_refused)
{
    sshd_start("");
    fake_root_run("echo \"@revoked * $(cat host_key.pub)\" >>known_hosts");
    sshd_expect_fail("@revoked", 20);
}

/* --- User keys ------------------------------------------------------------ */

static const char *other_key(const char *type, const char *passphrase)
{
    const char *path = fake_root_path("other");
    sshd_run("/usr/bin/ssh-keygen", "-q", "-t", type, "-N", passphrase, "-f",
             path, NULL);
    return path;
}

TEST(test_ssh_wrong_key_is_named)
{
    sshd_start("");
    sshd_node.identity = other_key("ed25519", "");
    sshd_expect_fail("no key accepted", 20);
    assert_says(sshd_seen.why.text, "/other (nodes[0].identity, refused)");
    assert_says(sshd_seen.why.text, "key agent (none)");
    assert_says(sshd_seen.why.text, "nodes.*.identity");
    ck_assert_uint_eq(sshd_seen.notes, 0); /* no second try */
}

TEST(test_ssh_encrypted_key_without_agent_is_a_clear_error)
{
    sshd_start("");
    sshd_node.identity = other_key("ed25519", "secret");
    sshd_expect_fail("encrypted: needs a key agent", 20);
}

LOOP_TEST(test_ssh_bad_key_files_are_named, 2)
{
    sshd_start("");
    sshd_node.identity =
        _i == 0 ? "/nonexistent/id" : launch_file("junk", "junk\n", 0600);
    sshd_expect_fail(_i == 0
                         ? "/nonexistent/id (nodes[0].identity, No such file"
                         : "not a private key",
                     20);
}

TEST(test_ssh_key_agent_serves_an_encrypted_identity)
{
    const char *sock = fake_root_path("agent"), *id = sshd_node.identity;
    int64_t deadline = rf_now_ns() + 5 * RF_NS_PER_S;
    pid_t agent = fork();
    if (agent == 0) {
        (void)!freopen("/dev/null", "w", stdout);
        (void)!freopen("/dev/null", "w", stderr);
        execl("/usr/bin/ssh-agent", "ssh-agent", "-D", "-a", sock,
              (char *)NULL);
        _exit(1);
    }
    sshd_adopt(agent);
    while (access(sock, F_OK) != 0) {
        ck_assert_int_lt(rf_now_ns(), deadline);
        rf_sleep_until_ns(rf_now_ns() + 5 * RF_NS_PER_MS);
    }
    setenv("SSH_AUTH_SOCK", sock, 1);
    sshd_run("/usr/bin/ssh-add", "-q", id, NULL);
    sshd_run("/usr/bin/ssh-keygen", "-q", "-p", "-N", "secret", "-f", id, NULL);
    sshd_start("");
    sshd_expect_success();
}

TEST(test_ssh_hung_key_agent_is_left_alone)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t started;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", fake_root);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    setenv("SSH_AUTH_SOCK", address.sun_path, 1);
    sshd_start("");
    sshd_node.identity = other_key("ed25519", "");
    started = rf_now_ns();
    sshd_expect_fail("key agent (does not answer)", 10);
    ck_assert_int_lt(rf_now_ns() - started, 6 * RF_NS_PER_S);
    close(fd);
}

TEST(test_ssh_server_without_public_keys_is_a_clear_error)
{
    sshd_start("PubkeyAuthentication no\nPasswordAuthentication yes\n");
    sshd_expect_fail("it offers password", 20);
}

/* --- Certificates --------------------------------------------------------- */

/* A server that trusts a certificate authority, `ca`, and no key by itself. */
static void start_with_authority(const char *more_lines)
{
    const char *ca = fake_root_path("ca");
    char more[256];
    sshd_run("/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ca,
             NULL);
    snprintf(more, sizeof(more), "%sTrustedUserCAKeys %s.pub\n", more_lines,
             ca);
    launch_file("authorized_keys", "", 0600);
    sshd_start(more);
}

/* Makes KEY-cert.pub, signed by the key `authority` of the test's folder. */
static void certify(const char *key, const char *authority)
{
    const struct passwd *me = getpwuid(getuid());
    char public[160];
    ck_assert_ptr_nonnull(me);
    snprintf(public, sizeof(public), "%s.pub", key);
    sshd_run("/usr/bin/ssh-keygen", "-q", "-s", fake_root_path(authority), "-I",
             "test", "-n", me->pw_name, public, NULL);
}

LOOP_TEST(test_ssh_certificate_beside_a_key_is_tried, 3)
{
    static const char *const types[] = {"ed25519", "ecdsa", "rsa"};
    const char *key = other_key(types[_i], "");
    start_with_authority("");
    certify(key, "ca");
    sshd_node.identity = key;
    sshd_expect_success();
}

TEST(test_ssh_certificates_of_the_config_are_tried)
{
    char text[512];
    start_with_authority("");
    certify(sshd_node.identity, "ca");
    fake_root_run("mv id-cert.pub elsewhere");
    snprintf(text, sizeof(text),
             "IdentityFile %s\nCertificateFile %s/absent\n"
             "CertificateFile %s/elsewhere\n",
             sshd_node.identity, fake_root, fake_root);
    sshd_how.use_ssh_config = true;
    sshd_how.ssh_config = launch_file("config", text, 0600);
    sshd_node.identity = NULL;
    sshd_expect_success();
    launch_file("elsewhere", "junk\n", 0600);
    sshd_expect_fail("/absent (No such file or directory), ", 20);
    assert_says(sshd_seen.why.text, "/elsewhere (not a certificate), ");
}

/* One that is broken, of another key, and of an authority unknown there. The
 * server does not say what is wrong with the last, as with an expired one. */
LOOP_TEST(test_ssh_bad_certificate_is_named_and_the_key_tried_alone, 3)
{
    static const char *const why[] = {"not a certificate",
                                      "certificate of another key", "refused"};
    char text[512];
    start_with_authority("");
    certify(sshd_node.identity, _i == 2 ? "host_key" : "ca");
    if (_i == 0) {
        launch_file("id-cert.pub", "junk\n", 0600);
    } else if (_i == 1) {
        certify(other_key("rsa", ""), "ca");
        fake_root_run("mv other-cert.pub id-cert.pub");
    }
    snprintf(text, sizeof(text),
             "/id-cert.pub (nodes[0].identity, %s), %s (nodes[0].identity, "
             "refused)",
             why[_i], sshd_node.identity);
    sshd_expect_fail(text, 20);
    ck_assert_int_eq(strstr(sshd_seen.why.text, "ssh-keygen -Lf") != NULL,
                     _i == 2);
    fake_root_run("mv id.pub authorized_keys");
    sshd_expect_success();
}

/* It is valid, but the server wants a second key, too. */
TEST(test_ssh_certificate_that_is_not_enough_is_not_blamed)
{
    start_with_authority("AuthenticationMethods publickey,publickey\n");
    certify(sshd_node.identity, "ca");
    sshd_expect_fail("the server requires more than a key", 20);
    ck_assert_ptr_null(strstr(sshd_seen.why.text, "ssh-keygen"));
}
