/* Joining and running: the real agent and its ranks as processes, against a
 * fake coordinator. Faults are in test_agent_faults.c. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/agent/agent_lab.h"
#include "tests/unit/worker/worker_lab.h"

/* --- Joining -------------------------------------------------------------- */

LIMIT(60)
FIXTURE(NULL, agent_lab_teardown)

TEST(test_agent_says_hello_with_its_facts)
{
    json_auto_t *hello;
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, fake_boot(NULL));
    ck_assert(fake_banner(&fake));
    hello = fake_expect(&fake, RF_MSG_HELLO);
    ck_assert_str_eq(json_text_at(hello, "control"), "stdio");
    ck_assert_int_eq(json_integer_at(hello, "pid"), fake.agent);
    ck_assert_int_gt(json_integer_at(hello, "start_ticks"), 0);
    ck_assert(json_is_null(json_at(hello, "methods.null")));
    ck_assert(json_is_string(json_object_get(hello, "boot_id")));
    ck_assert_int_gt(json_integer_at(hello, "memory_bytes"), 0);
    fake_send(&fake, RF_MSG_WELCOME,
              json_pack("{s:i}", "protocol", RF_PROTOCOL_MAX));
    json_decref(fake_expect(&fake, RF_MSG_LEASE));
    fake_send(&fake, RF_MSG_SHUTDOWN, json_object());
    ck_assert_int_eq(fake_wait(&fake), 0);
}

/* What the node can do is found out in the environment of its ranks. */
TEST(test_hello_is_of_the_environment_of_ranks)
{
    const json_t *environment;
    json_auto_t *hello;
    setenv("NCCL_DEBUG", "VERSION", 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, fake_boot(NULL));
    ck_assert(fake_banner(&fake));
    hello = fake_expect(&fake, RF_MSG_HELLO);
    environment = json_object_get(hello, "env");
    ck_assert_str_eq(json_text_at(environment, "NCCL_DEBUG"), "WARN");
    ck_assert_str_eq(json_text_at(environment, "NCCL_SOCKET_IFNAME"), "lo");
    ck_assert_ptr_null(json_object_get(environment, "NCCL_COMM_ID"));
    fake_close_input(&fake);
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 1);
}

/* A library that programs cannot be started with: the agent goes on living and
 * says so. */
TEST(test_environment_that_nothing_starts_in_is_refused)
{
    char folder[] = "/tmp/refit-agent-XXXXXX", path[64], errors[4096];
    json_t *boot = fake_boot(NULL), *error;
    FILE *file;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/libc.so.6", folder);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    json_object_set_new(json_object_get(boot, "env"), "LD_LIBRARY_PATH",
                        json_string(folder));
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, boot);
    ck_assert(fake_banner(&fake));
    error = fake_expect(&fake, RF_MSG_ERROR);
    assert_says(json_text_at(error, "text"),
                "exited with 127: check launch.env (LD_LIBRARY_PATH");
    json_decref(error);
    fake_read_errors(&fake, errors, sizeof(errors));
    assert_says(errors, "libc.so.6");
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 1);
    unlink(path);
    rmdir(folder);
}

TEST(test_unreachable_candidates_leave_control_on_stdio)
{
    json_t *boot = fake_boot("{\"connect_back_ms\": 300}"), *hello;
    char key[65];
    memset(key, 'b', 64);
    key[64] = '\0';
    json_object_set_new(boot, "psk", json_string(key));
    /* Port 1 is refused; the other address answers nothing. */
    json_object_set_new(boot, "candidates",
                        json_pack("[{s:s, s:i}, {s:s, s:i}]", "address",
                                  "127.0.0.1", "port", 1, "address",
                                  "192.0.2.199", "port", 9));
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, boot);
    ck_assert(fake_banner(&fake));
    hello = fake_expect(&fake, RF_MSG_HELLO);
    ck_assert_str_eq(json_text_at(hello, "control"), "stdio");
    json_decref(hello);
    fake_close_input(&fake);
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 1);
}

TEST(test_other_protocol_versions_are_refused_with_both_named)
{
    json_t *boot = fake_boot(NULL);
    char errors[2048], both[80];
    int status;
    json_object_set_new(
        boot, "protocol",
        json_pack("[i, i]", RF_PROTOCOL_MAX + 1, RF_PROTOCOL_MAX + 2));
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, boot);
    fake_read_errors(&fake, errors, sizeof(errors));
    status = fake_wait(&fake);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    snprintf(both, sizeof(both), "protocol %d to %d, this worker %d to %d",
             RF_PROTOCOL_MAX + 1, RF_PROTOCOL_MAX + 2, RF_PROTOCOL_MIN,
             RF_PROTOCOL_MAX);
    assert_says(errors, both);
}

TEST(test_garbage_instead_of_boot_ends_the_agent)
{
    int status;
    fake_start(&fake);
    ck_assert_int_eq(write(fake.in, "GET / HTTP/1.1\r\n\r\n    ", 22), 22);
    status = fake_wait(&fake);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* --- A scenario ----------------------------------------------------------- */

static const char *const methods[] = {"null", "host", "tcp"};

LOOP_TEST(test_a_scenario_runs_and_the_next_one_may_follow_at_once,
          RF_ARRAY_SIZE(methods))
{
    fake_join(&fake, NULL);
    run_scenario(methods[_i]);
    run_scenario(methods[_i]);
    fake_send(&fake, RF_MSG_SHUTDOWN, json_object());
    ck_assert_int_eq(fake_wait(&fake), 0);
}

TEST(test_ranks_without_a_result_are_not_listed)
{
    json_t *done;
    fake_join(&fake, NULL);
    begin_scenario("null", NULL);
    done = fake_step_ok(&fake, "fill", index_argument(0));
    ck_assert(json_is_true(json_object_get(done, "ok")));
    ck_assert_uint_eq(json_array_size(json_object_get(done, "ranks")), 0);
    json_decref(done);
    done = fake_step_ok(&fake, "run", index_argument(0));
    ck_assert_ptr_null(json_object_get(done, "ok"));
    ck_assert_uint_eq(json_array_size(json_object_get(done, "ranks")), 2);
    json_decref(done);
    step_ok("close", NULL);
}

/* A probe of copies, answered by both ranks. */
static json_t *probe_copies(void)
{
    return fake_step_ok(
        &fake, "probe",
        json_pack("{s:s, s:i}", "kind", "copy", "bytes", 256 << 20));
}

static bool has_rate(json_t *answer, const char *key)
{
    return json_number_value(json_object_get(answer, key)) > 0;
}

/* Ranks have no rate together where they did not copy at the same time, as may
 * happen on a busy machine. */
TEST(test_probes_give_figures)
{
    json_t *done, *answer;
    bool together = false;
    fake_join(&fake, NULL);
    begin_scenario("host", NULL);
    for (int try = 0; try < 10 && !together; try++) {
        done = probe_copies();
        together = true;
        for (int rank = 0; rank < 2; rank++) {
            answer = part_of(done, rank, "probed");
            ck_assert(has_rate(answer, "single_gbytes_per_s"));
            together &= has_rate(answer, "gbytes_per_s");
        }
        json_decref(done);
    }
    ck_assert_msg(together, "no probe gave both ranks a rate together");
    done =
        fake_step_ok(&fake, "probe",
                     json_pack("{s:s, s:[{s:i, s:i, s:i}]}", "kind", "link",
                               "links", "from", 1, "to", 0, "bytes", 1 << 20));
    answer = part_of(done, 0, "probed");
    ck_assert_double_gt(
        json_number_value(json_object_get(answer, "gbytes_per_s")), 0);
    ck_assert_double_gt(
        json_number_value(json_object_get(answer, "latency_us")), 0);
    ck_assert_ptr_null(
        json_object_get(part_of(done, 1, "probed"), "gbytes_per_s"));
    json_decref(done);
    /* Of links between other nodes a node hears nothing. */
    step_ok("probe", json_pack("{s:s}", "kind", "link"));
    step_ok("close", NULL);
}

TEST(test_a_link_probe_of_any_size_gives_a_figure)
{
    fake_join(&fake, NULL);
    begin_scenario("host", NULL);
    for (int bytes = 1; bytes < 1 << 20; bytes *= 8) {
        json_auto_t *done = fake_step_ok(
            &fake, "probe",
            json_pack("{s:s, s:[{s:i, s:i, s:i}]}", "kind", "link", "links",
                      "from", 0, "to", 1, "bytes", bytes));
        ck_assert_double_gt(json_number_value(json_object_get(
                                part_of(done, 1, "probed"), "gbytes_per_s")),
                            0);
    }
    step_ok("close", NULL);
}

TEST(test_a_source_that_changes_is_found_when_asked_for)
{
    fake_join(&fake, NULL);
    begin_scenario("host", "{\"flip\": {\"rank\": 0, \"side\": \"train\"}}");
    for (int iteration = 0; iteration < 2; iteration++) {
        json_auto_t *done;
        const json_t *first;
        step_ok("fill", index_argument(iteration));
        step_ok("run", index_argument(iteration));
        done = fake_step_ok(&fake, "verify",
                            json_pack("{s:i, s:b}", "index", iteration,
                                      "sources", iteration == 1));
        ck_assert_int_eq(sum_of(done, "verified", "mismatched_bytes"),
                         iteration == 1);
        ck_assert_int_gt(sum_of(done, "verified", "checked_bytes"), 0);
        first = json_object_get(part_of(done, 0, "verified"), "first");
        ck_assert((first == NULL) == (iteration == 0));
        ck_assert(iteration == 0 ||
                  strcmp(json_text_at(first, "side"), "train") == 0);
    }
    step_ok("close", NULL);
}

TEST(test_a_flipped_byte_is_reported_with_tensor_and_index)
{
    json_t *done, *first;
    fake_join(&fake, NULL);
    begin_scenario("host", "{\"flip\": {\"rank\": 1, \"iteration\": 1}}");
    for (int iteration = 0; iteration < 3; iteration++) {
        step_ok("fill", index_argument(iteration));
        step_ok("run", index_argument(iteration));
        done = fake_step_ok(&fake, "verify", index_argument(iteration));
        ck_assert_int_eq(sum_of(done, "verified", "mismatched_bytes"),
                         iteration == 1);
        if (iteration == 1) {
            first = json_object_get(part_of(done, 1, "verified"), "first");
            assert_says(json_text_at(first, "tensor"), "model.");
            ck_assert_uint_ge(json_array_size(json_object_get(first, "index")),
                              1);
            ck_assert_str_ne(json_text_at(first, "expected"),
                             json_text_at(first, "found"));
        }
        json_decref(done);
    }
    step_ok("close", NULL);
}

/* Wrong bytes of both ranks in an iteration, and how many were compared. */
static json_int_t wrong_bytes(int iteration, json_int_t *checked)
{
    json_auto_t *done =
        fake_step_ok(&fake, "verify", index_argument(iteration));
    json_int_t wrong = sum_of(done, "verified", "mismatched_bytes");
    *checked = sum_of(done, "verified", "checked_bytes");
    return wrong;
}

/* A refit that leaves out what it should write is found behind a yardstick,
 * too: the destinations are poisoned again, not full of its bytes. */
LOOP_TEST(test_nothing_of_a_yardstick_passes_for_a_refit, 3)
{
    static const char *const movers[] = {"host", "tcp", "shm"};
    json_int_t checked, moved, without;
    json_t *done;
    fake_join(&fake, NULL);
    start_scenario(movers[_i], NULL);
    done = fake_step_ok(&fake, "prepare", NULL);
    for (int rank = 0; rank < 2; rank++) {
        json_t *yardstick =
            json_object_get(part_of(done, rank, "prepared"), "yardstick");
        ck_assert_int_gt(json_integer_at(yardstick, "copied_bytes"), 0);
    }
    json_decref(done);
    step_ok("fill", index_argument(0));
    without = wrong_bytes(0, &checked);
    ck_assert_int_gt(checked, 0);
    for (int round = 0; round < 2; round++) {
        done = fake_step_ok(&fake, "yardstick", index_argument(0));
        moved = sum_of(done, "ran", "ns");
        ck_assert_int_gt(moved, 0);
        json_decref(done);
        ck_assert_int_gt(wrong_bytes(0, &checked), 0);
        step_ok("fill", index_argument(0));
        ck_assert_int_eq(wrong_bytes(0, &checked), without);
        step_ok("run", index_argument(0));
        ck_assert_int_eq(wrong_bytes(0, &checked), 0);
    }
    step_ok("close", NULL);
}

/* The wrong bytes after a refit right behind a yardstick. */
static json_int_t wrong_behind_yardstick(const char *encoding)
{
    json_int_t checked, wrong;
    char method[128];
    snprintf(method, sizeof(method),
             "tcp\", \"update\": {\"density\": 0.01}, \"encoding\": \"%s",
             encoding);
    begin_scenario(method, NULL);
    step_ok("fill", index_argument(0));
    json_decref(fake_step_ok(&fake, "yardstick", index_argument(0)));
    step_ok("run", index_argument(0));
    wrong = wrong_bytes(0, &checked);
    step_ok("close", NULL);
    return wrong;
}

/* Nor does a refit take it for the weights that it has changes of: only what
 * lies between the tensors is wrong then, as after a dense one. */
TEST(test_a_yardstick_leaves_no_base_of_changes)
{
    json_int_t dense;
    fake_join(&fake, NULL);
    dense = wrong_behind_yardstick("dense");
    ck_assert_int_eq(wrong_behind_yardstick("auto+raw"), dense);
}

TEST(test_a_scenario_may_have_no_yardstick)
{
    json_t *done, *answer;
    fake_join(&fake, NULL);
    start_scenario("null", NULL);
    done = fake_step_ok(&fake, "prepare", NULL);
    ck_assert_ptr_null(
        json_object_get(part_of(done, 0, "prepared"), "yardstick"));
    json_decref(done);
    done = fake_step(&fake, "yardstick", index_argument(0));
    answer = json_at(done, "ranks[0]");
    ck_assert_str_eq(json_text_at(answer, "error"),
                     "the scenario has no yardstick");
    json_decref(done);
}

TEST(test_times_are_on_the_coordinators_clock)
{
    json_t *done, *leases;
    int64_t start_ns;
    fake_join(&fake, "{\"lease_period_ms\": 50}");
    fake.clock_ns = 5000 * RF_NS_PER_S;
    begin_scenario("null", NULL);
    for (int i = 0; i < 8; i++) { /* time for exchanges of leases */
        leases = fake_expect(&fake, RF_MSG_LEASE);
        fake.heard_t = json_integer_at(leases, "t");
        fake.heard_at = rf_now_ns() + fake.clock_ns;
        fake.lease_ns = 0;
        json_decref(leases);
    }
    start_ns = rf_now_ns() + fake.clock_ns + 300 * RF_NS_PER_MS;
    done = fake_step_ok(&fake, "run",
                        json_pack("{s:i, s:I}", "index", 0, "start_at_ns",
                                  (json_int_t)start_ns));
    for (int rank = 0; rank < 2; rank++) {
        json_int_t at = json_integer_at(part_of(done, rank, "ran"), "start_ns");
        ck_assert_int_ge(at, start_ns - 100 * RF_NS_PER_MS);
        ck_assert_int_le(at, start_ns + 5 * RF_NS_PER_S);
    }
    json_decref(done);
}

/* Leases that answer none of the agent's are no exchange: it keeps to its own
 * clock. */
TEST(test_a_lease_that_echoes_nothing_tells_no_time)
{
    const int64_t slack_ns = 100 * RF_NS_PER_MS; /* a virtual clock may jump */
    json_auto_t *done;
    int64_t before_ns, start_ns, end_ns, after_ns;
    fake.deaf = true;
    fake.clock_ns = -20 * RF_NS_PER_S;
    fake_join(&fake, "{\"lease_period_ms\": 50}");
    begin_scenario("null", NULL);
    for (int i = 0; i < 3; i++) {
        json_decref(fake_expect(&fake, RF_MSG_LEASE));
        fake.lease_ns = 0;
    }
    before_ns = rf_now_ns();
    done = fake_step_ok(&fake, "run", json_pack("{s:i}", "index", 0));
    after_ns = rf_now_ns();
    start_ns = json_integer_at(part_of(done, 0, "ran"), "start_ns");
    end_ns = json_integer_at(part_of(done, 0, "ran"), "end_ns");
    ck_assert_msg(
        start_ns >= before_ns - slack_ns && end_ns <= after_ns + slack_ns,
        "from %" PRId64 " to %" PRId64 " ns between 0 and %" PRId64,
        start_ns - before_ns, end_ns - before_ns, after_ns - before_ns);
}

TEST(test_what_does_not_fit_is_refused_with_sizes)
{
    json_t *start, *done, *answer;
    fake_join(&fake, NULL);
    start = worker_lab_start(
        "{\"tensor\": {\"name\": \"w\", \"shape\": [4000000, 1000000], "
        "\"dtype\": \"F32\"}}",
        "{\"name\": \"s\", \"mode\": \"colocated\", \"train\": {\"layout\": "
        "\"hf\"}, \"infer\": {\"layout\": \"hf\"}}",
        1, 1);
    fake_send(&fake, RF_MSG_START, start);
    done = fake_step(&fake, "prepare", NULL);
    answer = answer_of(done, 0);
    ck_assert(!json_is_true(json_object_get(answer, "ok")));
    ck_assert_str_eq(json_text_at(answer, "status"), "out of memory");
    assert_says(json_text_at(answer, "error"), "need 32.00 TB");
    json_decref(done);
}

/* Keys of a newer coordinator. The rank refuses, so the node stays. */
static const struct {
    const char *needs, *error; /* NULL: it is prepared */
} newer[] = {
    {"$.scenario.train", NULL},
    {"$.scenario.lanes",
     "START: $.scenario.lanes: unknown key that the refit depends on"},
    {"$.scenario.train.knob",
     "START: $.scenario.train.knob: unknown key that the refit depends on"},
};

LOOP_TEST(test_keys_that_a_rank_does_not_know_are_ignored_unless_needed,
          RF_ARRAY_SIZE(newer))
{
    json_t *start, *done, *answer;
    const char *error;
    fake_join(&fake, NULL);
    start = worker_lab_start(LAB_MODEL,
                             "{'name': 's', 'mode': 'colocated', 'lanes': 2, "
                             "'train': {'knob': {'a': 1}}, 'infer': {}}",
                             1, 1);
    json_object_set_new(start, "needs", json_pack("[s]", newer[_i].needs));
    fake_send(&fake, RF_MSG_START, start);
    done = fake_step(&fake, "prepare", NULL);
    answer = answer_of(done, 0);
    error = json_text_at(answer, "error");
    if (newer[_i].error == NULL) {
        ck_assert_msg(error == NULL, "%s", error);
    } else {
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, newer[_i].error) == error, "%s", error);
    }
    json_decref(done);
}

/* Sends a mebibyte through the loopback interface. */
static void send_mebibyte(void)
{
    static char data[32 << 10];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(to);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (void *)&to, size), 0);
    ck_assert_int_eq(getsockname(fd, (void *)&to, &size), 0);
    for (size_t sent = 0; sent < 1 << 20; sent += sizeof(data)) {
        ck_assert_int_eq(sendto(fd, data, sizeof(data), 0, (void *)&to, size),
                         sizeof(data));
        ck_assert_int_eq(recv(fd, data, sizeof(data), 0), sizeof(data));
    }
    close(fd);
}

/* Before any rank may run, so that none waits for it. They are the machine's,
 * so how many more depends on others. */
TEST(test_an_agent_counts_bytes_from_fill_to_verify)
{
    json_auto_t *hello, *ran, *verified, *again;
    const json_t *network;
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, fake_boot(NULL));
    ck_assert(fake_banner(&fake));
    hello = fake_expect(&fake, RF_MSG_HELLO);
    fake_send(&fake, RF_MSG_WELCOME,
              json_pack("{s:i}", "protocol", RF_PROTOCOL_MAX));
    begin_scenario("shm", NULL);
    step_ok("fill", index_argument(0));
    send_mebibyte();
    ran = fake_step_ok(&fake, "run", index_argument(0));
    ck_assert_ptr_null(json_object_get(ran, "network"));
    verified = fake_step_ok(&fake, "verify", index_argument(0));
    network = json_object_get(verified, "network");
    ck_assert_int_ge(json_integer_at(network, "loopback_bytes"), 1 << 20);
    ck_assert_int_ge(json_integer_at(network, "segments"), 0);
    ck_assert_int_ge(json_integer_at(network, "retransmits"), 0);
    ck_assert_uint_le(json_array_size(json_object_get(network, "interfaces")),
                      json_array_size(json_object_get(hello, "interfaces")));
    again = fake_step_ok(&fake, "fill", index_argument(1));
    ck_assert_ptr_null(json_object_get(again, "network"));
}

TEST(test_a_step_out_of_order_is_refused)
{
    json_t *done;
    fake_join(&fake, NULL);
    start_scenario("null", NULL);
    done = fake_step(&fake, "run", index_argument(0));
    ck_assert_uint_eq(json_array_size(json_object_get(done, "ranks")), 1);
    json_decref(done);
    json_decref(fake_expect(&fake, RF_MSG_DONE)); /* of the other rank */
    done = fake_step(&fake, "dance", NULL);
    ck_assert_str_eq(json_text_at(done, "ranks[0].error"),
                     "unknown step \"dance\"");
    json_decref(done);
}

LOOP_TEST(test_a_step_that_names_no_iteration_is_refused, 4)
{
    static const char *const steps[] = {"fill", "run", "verify", "yardstick"};
    json_t *done, *answer;
    fake_join(&fake, NULL);
    begin_scenario("null", NULL);
    done = fake_step(&fake, steps[_i], NULL);
    answer = json_at(done, "ranks[0]");
    assert_says(json_text_at(answer, "error"), "lacks an iteration");
    ck_assert_str_eq(json_text_at(answer, "phase"), steps[_i]);
    json_decref(done);
}

/* The answer about a checkpoint's folder; a new reference. */
static json_t *inspect(const char *path, bool whole)
{
    fake_send(&fake, RF_MSG_INSPECT,
              json_pack("{s:s, s:b, s:i}", "folder", path, "whole", whole,
                        "timeout_s", 20));
    return fake_expect(&fake, RF_MSG_HEADERS);
}

TEST(test_agent_answers_what_a_checkpoints_headers_say)
{
    static const char header[] = "\x45\0\0\0\0\0\0\0"
                                 "{\"one\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                                 "\"data_offsets\":[0,24]}}             ";
    static const uint8_t data[24];
    char folder[] = "/tmp/refit-agent-XXXXXX", path[64];
    json_t *answer, *digests;
    FILE *file;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a.safetensors", folder);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(header, 1, 8 + 0x45, file), 8 + 0x45);
    ck_assert_uint_eq(fwrite(data, 1, sizeof(data), file), sizeof(data));
    ck_assert_int_eq(fclose(file), 0);
    fake_join(&fake, NULL);
    answer = inspect(folder, true);
    ck_assert_ptr_nonnull(json_at(answer, "headers.manifest.one"));
    digests = json_deep_copy(json_object_get(answer, "digests"));
    ck_assert_uint_eq(json_object_size(digests), 1);
    json_decref(answer);
    answer = inspect(folder, false);
    ck_assert_ptr_null(json_object_get(answer, "headers"));
    ck_assert(json_equal(json_object_get(answer, "digests"), digests));
    json_decref(digests);
    json_decref(answer);
    unlink(path);
    rmdir(folder);
    answer = inspect(folder, true);
    assert_says(json_text_at(answer, "error"), "No such file");
    json_decref(answer);
    fake_send(&fake, RF_MSG_SHUTDOWN, json_object());
    ck_assert_int_eq(fake_wait(&fake), 0);
}

/* The error names the member. */
TEST(test_a_message_out_of_bounds_ends_the_agent)
{
    char errors[2048];
    fake_join(&fake, NULL);
    fake_send(
        &fake, RF_MSG_STEP,
        json_pack("{s:i, s:i, s:s}", "attempt", 7, "seq", -1, "step", "run"));
    fake_read_errors(&fake, errors, sizeof(errors));
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 1);
    assert_says(errors, "STEP: $.seq: must be an integer, 0 or more");
}

/* --- What ranks inherit --------------------------------------------------- */

static bool file_contains(const char *path, const char *text)
{
    static char content[1 << 16];
    size_t used, length = strlen(text);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    used = fread(content, 1, sizeof(content), file);
    fclose(file);
    return memmem(content, used, text, length) != NULL;
}

static bool has_open(pid_t pid, const char *name)
{
    char folder[64], path[320], target[512];
    struct dirent *entry;
    bool found = false;
    DIR *list;
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
    list = opendir(folder);
    ck_assert_ptr_nonnull(list);
    while ((entry = readdir(list)) != NULL) {
        ssize_t n;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        n = readlink(path, target, sizeof(target) - 1);
        if (n > 0) {
            target[n] = '\0';
            found |= strstr(target, name) != NULL;
        }
    }
    closedir(list);
    return found;
}

TEST(test_ranks_inherit_only_what_they_need)
{
    pid_t ranks[2];
    char path[64];
    /* An open file without close-on-exec, and a secret in the environment. */
    int leak = open("/proc/self/mounts", O_RDONLY);
    ck_assert_int_ge(leak, 0);
    setenv("SECRET_TOKEN", "hunter2", 1);
    setenv("NCCL_COMM_ID", "1.2.3.4:5", 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    fake_join(&fake, NULL);
    begin_ranks("null", NULL, ranks);
    ck_assert(!has_open(ranks[0], "mounts"));
    ck_assert(has_open(ranks[0], "socket:"));
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)ranks[0]);
    ck_assert(!file_contains(path, "SECRET_TOKEN"));
    ck_assert(!file_contains(path, "NCCL_COMM_ID"));
    ck_assert(file_contains(path, "NCCL_SOCKET_IFNAME=lo"));
    ck_assert(file_contains(path, "NCCL_DEBUG=WARN"));
    ck_assert(file_contains(path, "PATH="));
    close(leak);
}
