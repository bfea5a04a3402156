/*
 * The listener, with agents that the test plays: who may join, what follows
 * when one fails before HELLO, and strangers that take up what they can.
 */
#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster_internal.h"
#include "tests/lib/configured.h"
#include "tests/lib/conn_ends.h"
#include "tests/lib/flood.h"

/* How the agent of node "a" is to join. */
struct invitation {
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES];
    unsigned port;
};

static char folder[64];
static struct rf_config *config;
static struct rf_model *model;
static struct rf_cluster *cluster;
static struct invitation invited;
static struct flood *flood;
static unsigned n_hellos, n_lost, n_stopped;
static char lost_why[1024], logged[16384], command[1024];

static bool hello_cb(uint32_t node, const json_t *hello, void *data)
{
    (void)hello;
    (void)data;
    ck_assert_uint_eq(node, 0);
    n_hellos++;
    return true;
}

static void lost_cb(uint32_t node, const struct rf_err *why, void *data)
{
    (void)data;
    ck_assert_uint_eq(node, 0);
    n_lost++;
    strcpy(lost_why, why->text);
}

static void message_cb(uint32_t node, enum rf_msg_type type,
                       const json_t *payload, void *data)
{
    (void)node;
    (void)type;
    (void)payload;
    (void)data;
}

static void log_cb(uint32_t node, uint32_t rank, const char *line, void *data)
{
    (void)node;
    (void)rank;
    (void)line;
    (void)data;
}

static void stopped_cb(void *data)
{
    (void)data;
    n_stopped++;
}

static const struct rf_cluster_ops cluster_ops = {hello_cb, lost_cb, message_cb,
                                                  log_cb, stopped_cb};

static void take_line(enum rf_log_level level, const char *line, void *data)
{
    const char *at = strstr(line, "--connect ");
    (void)level;
    (void)data;
    if (at != NULL) {
        snprintf(command, sizeof(command), "%s", at);
    }
    snprintf(logged + strlen(logged), sizeof(logged) - strlen(logged), "%s\n",
             line);
}

static void setup(void)
{
    ends_setup();
    strcpy(folder, "/tmp/refit-listen-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    rf_log_set_sink(take_line, NULL);
}

static bool is_stopped(void)
{
    return n_stopped > 0;
}

static void teardown(void)
{
    char *clean = rf_xasprintf("rm -rf %s", folder);
    flood_stop(flood);
    rf_cluster_stop(cluster, true);
    ends_run_until(is_stopped);
    rf_cluster_destroy(cluster);
    ends_teardown();
    rf_model_destroy(model);
    rf_config_destroy(config);
    rf_log_set_sink(NULL, NULL);
    ck_assert_int_eq(system(clean), 0);
    free(clean);
}

static void launch(const char *method, const char *worker)
{
    char *text = rf_xasprintf(
        "{\"launch\": {\"method\": \"%s\", \"worker\": \"%s\"}, \"control\": "
        "{\"address\": \"127.0.0.1\"}, \"nodes\": [{\"host\": \"a\", "
        "\"slots\": 1}], \"model\": {\"megatron\": {\"num_layers\": 2, "
        "\"hidden_size\": 64, \"num_attention_heads\": 4, \"vocab_size\": "
        "128}}, \"scenarios\": [{\"name\": \"s\", \"train\": {}, \"infer\": "
        "{}}]}",
        method, worker);
    struct rf_err err = {0};
    configured(text, &config, &model);
    free(text);
    ck_assert_msg(rf_cluster_create(&ends_loop, config, "run", &cluster_ops,
                                    NULL, &cluster, &err) == RF_OK,
                  "%s", err.text);
    rf_cluster_launch(cluster);
}

/* --- Invitations ---------------------------------------------------------- */

static bool command_came(void)
{
    return command[0] != '\0';
}

/* Launcher manual: what the user is told to run. */
static void launch_by_hand(void)
{
    char path[256], key[2 * RF_PSK_BYTES + 1];
    FILE *file;
    launch("manual", "refit-worker");
    ends_run_until(command_came);
    ck_assert_int_eq(sscanf(command,
                            "--connect 127.0.0.1:%u --identity %128s "
                            "--key-file %255s",
                            &invited.port, invited.identity, path),
                     3);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%64s", key), 1);
    fclose(file);
    ck_assert(rf_hex_decode(key, invited.psk, RF_PSK_BYTES));
}

/* What a program in the agent's place has put into a file. */
static json_t *boot_message(void)
{
    char *path = rf_xasprintf("%s/boot", folder);
    static char text[65536];
    FILE *file = fopen(path, "r");
    size_t size = 0;
    free(path);
    if (file != NULL) {
        size = fread(text, 1, sizeof(text), file);
        fclose(file);
    }
    return size <= RF_FRAME_HEADER_BYTES
               ? NULL
               : json_loadb(text + RF_FRAME_HEADER_BYTES,
                            size - RF_FRAME_HEADER_BYTES, 0, NULL);
}

static bool boot_came(void)
{
    json_t *boot = boot_message();
    json_decref(boot);
    return boot != NULL;
}

/* Launcher local: what BOOT says. */
static void launch_locally(void)
{
    char *path = rf_xasprintf("%s/worker", folder);
    FILE *file = fopen(path, "w");
    json_t *boot;
    const char *psk, *identity;
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\nexec cat >%s/boot\n", folder);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    launch("local", path);
    free(path);
    ends_run_until(boot_came);
    boot = boot_message();
    ck_assert_int_eq(json_unpack(boot, "{s:s, s:s, s:[{s:i}]}", "psk", &psk,
                                 "identity", &identity, "candidates", "port",
                                 &invited.port),
                     0);
    strcpy(invited.identity, identity);
    ck_assert(rf_hex_decode(psk, invited.psk, RF_PSK_BYTES));
    json_decref(boot);
}

/* --- Agents --------------------------------------------------------------- */

static int connected_to(const char *address, unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = inet_addr(address)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static int connected(void)
{
    return connected_to("127.0.0.1", invited.port);
}

static bool left_is_ready(void)
{
    return ends_left.ready > 0 || ends_left.closes > 0;
}

/* An agent that has proved its key, on ends_left. */
static void join(void)
{
    struct rf_tls *tls = NULL;
    memset(&ends_left, 0, sizeof(ends_left));
    ck_assert_int_eq(
        rf_tls_client_create(invited.identity, invited.psk, &tls, NULL), RF_OK);
    ends_open(&ends_left, connected(), tls);
    ends_run_until(left_is_ready);
}

static void say_hello(void)
{
    rf_conn_send(ends_left.conn, RF_MSG_HELLO, RF_FRAME_NO_RANK,
                 json_pack("{s:i}", "node", 0));
}

/* Index of a loop test: what is wrong with the first frame. */
static void say_nonsense(int which)
{
    if (which == 0) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_HELLO, 0, "{", 1);
    } else if (which == 1) {
        rf_conn_send(ends_left.conn, RF_MSG_DONE, 0, json_object());
    } else {
        rf_conn_send_raw(ends_left.conn, (enum rf_msg_type)200, 0, "", 0);
    }
}

static bool said_hello(void)
{
    return n_hellos > 0;
}

static bool is_lost(void)
{
    return n_lost > 0;
}

static const char *const reasons[] = {"HELLO", "before it has joined",
                                      "type 200"};

START_TEST(test_cluster_listen_a_worker_may_be_started_again_by_hand)
{
    launch_by_hand();
    join();
    say_nonsense(_i);
    ends_run_until(ends_left_closed);
    ck_assert_ptr_nonnull(strstr(logged, "warning: a: "));
    ck_assert_msg(strstr(logged, reasons[_i]) != NULL, "%s", logged);
    join();
    say_hello();
    ends_run_until(said_hello);
    ck_assert_uint_eq(n_lost, 0);
}
END_TEST

START_TEST(test_cluster_listen_a_bad_frame_before_hello_loses_a_launched_node)
{
    launch_locally();
    join();
    say_nonsense(_i);
    ends_run_until(is_lost);
    ck_assert_msg(strstr(lost_why, reasons[_i]) != NULL, "%s", lost_why);
    join();
    ck_assert_uint_eq(ends_left.ready, 0);
}
END_TEST

START_TEST(test_cluster_listen_a_cut_before_hello_loses_a_launched_node)
{
    static const struct rf_err cut = {.status = RF_ERR_PEER};
    launch_locally();
    join();
    rf_conn_fail(ends_left.conn, &cut);
    ends_run_until(is_lost);
    ck_assert_msg(strstr(lost_why, "before it had joined") != NULL, "%s",
                  lost_why);
}
END_TEST

START_TEST(test_cluster_listen_an_identity_joins_once)
{
    launch_by_hand();
    join();
    say_hello();
    ends_run_until(said_hello);
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_left_closed);
    join();
    ck_assert_uint_eq(ends_left.ready, 0);
    ck_assert_ptr_nonnull(
        strstr(logged, "a second connection claims to be a: refused"));
}
END_TEST

/* A shell without a first line "#!" gives such a message of its own. */
START_TEST(test_cluster_listen_a_worker_that_a_shell_ran_is_no_program)
{
    static const char *const says[] = {"$0: line 1: x: command not found",
                                       "$0: 1: x: not found",
                                       "sh: 1: $0: not found"};
    char *path = rf_xasprintf("%s/worker", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\necho \"%s\" >&2\nexit 127\n", says[_i]);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    launch("local", path);
    free(path);
    ends_run_until(is_lost);
    ck_assert_msg(
        strstr(lost_why, _i < 2 ? "is not a program" : "was not found") != NULL,
        "%s", lost_why);
}
END_TEST

/* --- Strangers ------------------------------------------------------------ */

static unsigned long flood_wanted;

static bool flood_goes_on(void)
{
    return flood_count(flood) >= flood_wanted;
}

static void await_flood(unsigned long more)
{
    flood_wanted = flood_count(flood) + more;
    ends_run_until(flood_goes_on);
}

START_TEST(test_cluster_listen_a_node_joins_while_its_address_floods)
{
    static const char half_a_hello[] =
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    static const struct {
        const char *says;
        size_t size;
    } kinds[] = {{"", 0}, {"GET / HTTP/1.0\r\n\r\n", 18}, {half_a_hello, 11}};
    launch_by_hand();
    /* More than there is room for, fewer than any kernel queues. */
    flood = flood_start(invited.port, 120, kinds[_i].says, kinds[_i].size);
    await_flood(1000);
    join();
    ck_assert_uint_eq(ends_left.ready, 1);
    say_hello();
    ends_run_until(said_hello);
    await_flood(1); /* not because it was over */
}
END_TEST

/* Connections that say nothing; their descriptors are left to the end of the
 * test's process. */
static void connect_silently(unsigned n)
{
    while (n-- > 0) {
        (void)connected();
    }
}

static void count_tcp(uv_handle_t *handle, void *data)
{
    unsigned *count = data;
    *count += handle->type == UV_TCP && !uv_is_closing(handle);
}

static unsigned tcp_handles(void)
{
    unsigned count = 0;
    uv_walk(&ends_loop, count_tcp, &count);
    return count;
}

static bool all_are_in(void)
{
    return tcp_handles() == 1 + 60;
}

START_TEST(test_cluster_listen_a_turn_of_the_loop_accepts_a_few)
{
    launch_by_hand();
    connect_silently(60);
    ck_assert_uint_eq(tcp_handles(), 1); /* that listens */
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    ck_assert_uint_lt(tcp_handles(), 30);
    ends_run_until(all_are_in);
}
END_TEST

static int watched = -1;

static bool has_an_answer(void)
{
    char byte;
    return recv(watched, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool many_were_refused(void)
{
    return strstr(logged, "; 64 so far") != NULL;
}

/* The node's first bytes, on a connection of its own: `watched`. */
static struct rf_tls *send_client_hello(void)
{
    struct rf_tls *tls = NULL;
    char hello[4096];
    bool done;
    size_t size;
    watched = connected();
    ck_assert_int_eq(
        rf_tls_client_create(invited.identity, invited.psk, &tls, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_handshake(tls, &done, NULL), RF_OK);
    size = rf_tls_drain(tls, hello, sizeof(hello));
    ck_assert_int_eq(send(watched, hello, size, 0), (ssize_t)size);
    return tls;
}

/* As control.address "auto" has one for each interface. */
START_TEST(test_cluster_listen_all_listeners_share_what_a_turn_accepts)
{
    static const char *const more[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4"};
    struct rf_tls *tls;
    launch_by_hand();
    for (size_t i = 0; i < RF_ARRAY_SIZE(more); i++) {
        ck_assert_ptr_nonnull(rf_cluster_listen(cluster, more[i]));
    }
    tls = send_client_hello();
    for (const struct cluster_listener *listener = cluster->listeners;
         listener != NULL; listener = listener->next) {
        for (int i = 0; i < 60; i++) {
            (void)connected_to(listener->address, listener->port);
        }
    }
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    ck_assert_uint_lt(tcp_handles(), 4 + 30);
    ends_run_until(many_were_refused);
    ends_open(&ends_left, watched, tls);
    ends_run_until(left_is_ready);
    ck_assert_uint_eq(ends_left.ready, 1);
}
END_TEST

START_TEST(test_cluster_listen_who_has_proved_a_key_is_not_sent_away)
{
    struct rf_tls *tls;
    launch_by_hand();
    tls = send_client_hello();
    ends_run_until(has_an_answer);
    for (int i = 0; i < 15; i++) {
        connect_silently(16); /* what a turn accepts: none blocks */
        uv_run(&ends_loop, UV_RUN_NOWAIT);
    }
    ends_run_until(many_were_refused);
    ends_open(&ends_left, watched, tls);
    ends_run_until(left_is_ready);
    ck_assert_uint_eq(ends_left.ready, 1);
}
END_TEST

static bool a_claim_was_refused(void)
{
    return strstr(logged, "; 1 so far") != NULL;
}

START_TEST(test_cluster_listen_of_two_handshakes_at_once_one_is_refused)
{
    struct rf_tls *first, *second;
    int other;
    launch_by_hand();
    first = send_client_hello();
    other = watched;
    second = send_client_hello();
    ends_run_until(has_an_answer);
    ends_open(&ends_left, other, first);
    ends_open(&ends_right, watched, second);
    ends_run_until(a_claim_was_refused);
    ck_assert_ptr_nonnull(strstr(
        logged, "refused a connection from 127.0.0.1 (another connection"));
    ck_assert_ptr_nonnull(
        strstr(logged, "a second connection claims to be a: refused"));
}
END_TEST

static bool was_refused(void)
{
    return strstr(logged, "refused a connection from 127.0.0.1 (it sent "
                          "nothing); 1 so far") != NULL;
}

START_TEST(test_cluster_listen_who_says_nothing_is_closed_in_time)
{
    launch_by_hand();
    connect_silently(1);
    ends_run_until(was_refused);
    ck_assert_uint_eq(tcp_handles(), 1);
}
END_TEST

Suite *test_cluster_listen_suite(void);
Suite *test_cluster_listen_suite(void)
{
    Suite *suite = suite_create("cluster_listen");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(
        tests, test_cluster_listen_a_worker_may_be_started_again_by_hand, 0, 3);
    tcase_add_loop_test(
        tests,
        test_cluster_listen_a_bad_frame_before_hello_loses_a_launched_node, 0,
        3);
    tcase_add_test(
        tests, test_cluster_listen_a_cut_before_hello_loses_a_launched_node);
    tcase_add_test(tests, test_cluster_listen_an_identity_joins_once);
    tcase_add_loop_test(
        tests, test_cluster_listen_a_worker_that_a_shell_ran_is_no_program, 0,
        3);
    tcase_add_loop_test(
        tests, test_cluster_listen_a_node_joins_while_its_address_floods, 0, 3);
    tcase_add_test(tests, test_cluster_listen_a_turn_of_the_loop_accepts_a_few);
    tcase_add_test(tests,
                   test_cluster_listen_all_listeners_share_what_a_turn_accepts);
    tcase_add_test(tests,
                   test_cluster_listen_who_has_proved_a_key_is_not_sent_away);
    tcase_add_test(
        tests, test_cluster_listen_of_two_handshakes_at_once_one_is_refused);
    tcase_add_test(tests,
                   test_cluster_listen_who_says_nothing_is_closed_in_time);
    suite_add_tcase(suite, tests);
    return suite;
}
