/* Every message's struct against an example of its payload. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/store.h"
#include "tests/unit/transport/control/reference.h"
#include "tests/unit/unit.h"
#include "transport/control/message_fields.h"

AUTO_STRUCT(rf_msg, rf_msg_free)

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* With every member, so that encoding gives back the same. */
static const struct {
    enum rf_msg_type type;
    const char *text;
} examples[] = {
    {RF_MSG_BOOT,
     "{\"protocol\": [2, 2], \"run_id\": \"a1b2\", \"node\": 3, \"nonce\": "
     "\"ab\", \"psk\": \"" HEX64 "\", \"identity\": \"a1b2/3\", "
     "\"candidates\": [{\"address\": \"fd00::1\", \"port\": 4001}], "
     "\"data_address\": \"10.0.0.1\", \"log_level\": 2, \"env\": {\"A\": "
     "\"b\"}, \"limits\": {\"lease_period_ms\": 1, \"lease_dead_ms\": 2, "
     "\"connect_back_ms\": 3, \"abort_grace_ms\": 4, \"term_grace_ms\": 5}, "
     "\"shared\": {\"token\": \"c0ffee\", \"nodes\": 4, \"folders\": "
     "[\"/mnt\"]}, \"bind\": {\"to\": \"core\", \"slots\": 8}, "
     "\"reach_key\": \"" HEX64 "\"}"},
    {RF_MSG_HELLO,
     "{\"protocol\": [2, 2], \"node\": 3, \"version\": \"1.0\", \"build\": "
     "\"b\", \"control\": \"tcp\", \"candidate\": \"10.0.0.1:4\", "
     "\"hostname\": \"h\", \"boot_id\": \"i\", \"pid\": 9, \"start_ticks\": "
     "10, \"address\": \"10.0.0.2\", \"network\": 11, \"cpus\": 8, "
     "\"memory_bytes\": 100, "
     "\"memory_available_bytes\": 90, \"memory_limits\": [{\"group\": 5, "
     "\"available_bytes\": 90}], \"shm_bytes\": 80, \"kernel\": \"Linux\", "
     "\"cpu\": \"c\", "
     "\"nics\": [{\"name\": \"eth0\", \"speed_mbit\": -1, \"mtu\": 1500, "
     "\"address\": \"10.0.0.2\", \"physical\": true}], \"interfaces\": "
     "[{\"name\": \"eth0\", \"kind\": \"ethernet\", \"speed_mbit\": 400000, "
     "\"rdma\": \"mlx5_0/1\"}], \"methods\": {\"tcp\": "
     "null, \"ipc\": \"no device\"}, \"gpus\": [{\"index\": 0, \"name\": "
     "\"H\", \"uuid\": \"u\", "
     "\"pci_bus_id\": \"p\", \"memory_bytes\": 80, \"compute_capability\": "
     "\"9.0\", \"multiprocessors\": 132, \"processes\": 2, "
     "\"foreign_bytes\": 7, \"ecc_errors\": 1, \"slowed\": \"hot\", "
     "\"dmabuf\": true, \"why\": \"split\"}], "
     "\"topology\": {\"numa_nodes\": [{\"number\": 1, \"cpus\": "
     "\"0-3,8\"}], \"nics\": [{\"name\": \"mlx5_0\", \"interfaces\": "
     "[\"ib0\"], \"speed_mbit\": 400000, \"pci\": {\"path\": "
     "\"pci0000:15/0000:18:00.0\", \"numa_node\": 1, \"gtransfers_per_s\": "
     "2.5, \"lanes\": 16}}], \"gpus\": [{\"index\": 0, \"pci\": {\"path\": "
     "\"p\", \"numa_node\": null, \"gtransfers_per_s\": null, \"lanes\": "
     "null}, \"nearest_nics\": [\"mlx5_0\"]}]}, "
     "\"memlock_bytes\": 65536, "
     "\"rdma\": "
     "{\"adapters\": 1, \"verbs\": true, \"peermem\": true}, \"cuda\": "
     "{\"driver\": 13000, "
     "\"runtime\": 12090, \"driver_version\": \"580\", \"why\": null}, "
     "\"nccl\": {\"version\": \"2.27\", \"path\": \"/l\", \"sha256\": \"s\", "
     "\"why\": null}, \"congestion_control\": \"cubic\", \"env\": {\"A\": "
     "\"b\"}, \"folders\": [{\"path\": \"/mnt\", \"error\": null, \"sees\": "
     "[0, 1]}], \"files\": \"0a.1b.2.3\", \"reach_port\": 4002}"},
    {RF_MSG_WELCOME, "{\"protocol\": 2}"},
    {RF_MSG_INSPECT,
     "{\"folder\": \"/models/m\", \"whole\": true, \"timeout_s\": 120}"},
    {RF_MSG_HEADERS, "{\"error\": null, \"digests\": {\"a.safetensors\": "
                     "\"00ff\"}, \"headers\": {\"manifest\": {}}}"},
    {RF_MSG_REACH, "{\"peers\": [{\"node\": 1, \"address\": \"10.0.0.2\", "
                   "\"port\": 4002}]}"},
    {RF_MSG_REACHED, "{\"peers\": [{\"node\": 1, \"error\": null}, {\"node\": "
                     "2, \"error\": \"refused\"}]}"},
    {RF_MSG_START,
     "{\"attempt\": 1, \"model\": {\"m\": 1}, \"scenario\": {\"s\": [2]}, "
     "\"needs\": [\"$.scenario.s\"], "
     "\"nodes\": [{\"name\": \"a\", \"slots\": 8, \"address\": null}], "
     "\"data_key\": \"" HEX64 "\", \"test\": {\"flip\": {\"rank\": 1, "
     "\"iteration\": 2, \"side\": \"train\"}, \"exit\": {\"rank\": 0, "
     "\"phase\": \"run\", \"status\": 3, \"signal\": 9}, \"stall\": "
     "{\"rank\": 5}, \"print\": {\"rank\": 6, \"bytes\": 7}}}"},
    {RF_MSG_STEP,
     "{\"attempt\": 1, \"seq\": 2, \"step\": \"probe\", \"timeout_s\": 1.5, "
     "\"index\": 3, \"start_at_ns\": -4, \"load_ns\": 5, \"sources\": "
     "true, \"kind\": \"link\", \"bytes\": 5, \"links\": [{\"from\": 6, "
     "\"to\": 7, \"bytes\": 8}]}"},
    {RF_MSG_DONE,
     "{\"attempt\": 1, \"seq\": 2, \"ok\": true, "
     "\"ranks\": [{\"rank\": 0, \"ok\": true, "
     "\"prepared\": {\"plan_digest\": \"p\", \"schedule_digest\": \"s\", "
     "\"plan_ms\": 1.5, \"open_ms\": 2.5, \"connect_ms\": 3.5, "
     "\"cpus\": \"0-3\", \"numa_node\": 0, \"arena_bytes\": {\"train\": 1, "
     "\"infer\": 2, \"stage\": 3}, \"copies\": {\"rule\": \"measured\", "
     "\"engine_from_bytes\": 1, \"engine_bytes\": 2, \"kernel_bytes\": 3}}, "
     "\"probed\": {\"gbytes_per_s\": 1.5, "
     "\"single_gbytes_per_s\": 2.5, \"scan_gbytes_per_s\": 4.5, "
     "\"convert_gbytes_per_s\": 5.5, \"latency_us\": 3.5}, \"ran\": "
     "{\"start_ns\": -1, \"end_ns\": 2, \"ns\": 3, \"pack_ns\": 4, "
     "\"wire_ns\": 5, \"unpack_ns\": 6, \"sync_ns\": 7, \"device_ns\": 8, "
     "\"quantize_ns\": 2, \"amax_ns\": 1, \"sent_bytes\": 8, "
     "\"received_bytes\": 9, \"link_sent_bytes\": 6, "
     "\"link_received_bytes\": 7, \"load_alone_ns\": 10, "
     "\"load_alone_bytes\": 11, \"load_ns\": 13, \"load_bytes\": 12, "
     "\"resync\": true}, "
     "\"verified\": "
     "{\"checked_bytes\": 1, "
     "\"quantized_bytes\": 2, \"mismatched_bytes\": 3, \"first\": {\"side\": "
     "\"infer\", \"tensor\": \"t\", \"index\": [1, 2], \"expected\": \"0a\", "
     "\"found\": \"0b\"}}, \"closed\": {\"host_peak_bytes\": 1, "
     "\"device_peak_bytes\": 2, \"device\": {\"arena_bytes\": 1, "
     "\"runtime_bytes\": 2, \"process_bytes\": 3, \"device_bytes\": 4, "
     "\"foreign_bytes\": 5, \"nvlink_sent_bytes\": 6, "
     "\"nvlink_received_bytes\": 7}}}, {\"rank\": 1, \"status\": \"i/o "
     "error\", \"error\": \"e\", \"phase\": \"run\"}], \"network\": "
     "{\"loopback_bytes\": 1, \"segments\": 2, \"retransmits\": 3, "
     "\"interfaces\": [{\"name\": \"eth0\", \"sent_bytes\": 4, "
     "\"received_bytes\": 5, \"rdma_sent_bytes\": 6, "
     "\"rdma_received_bytes\": 7, \"dropped\": 8}]}}"},
    {RF_MSG_EXCHANGE,
     "{\"attempt\": 1, \"seq\": 0, \"parts\": [{\"rank\": 0, \"data\": "
     "\"5ec7e7\"}, {\"rank\": 1, \"data\": \"\"}]}"},
    {RF_MSG_EXCHANGED,
     "{\"attempt\": 1, \"seq\": 0, \"data\": [\"5ec7e7\", \"\"]}"},
    {RF_MSG_LEASE, "{\"t\": 1, \"echo\": 2, \"echo_at\": 3}"},
    {RF_MSG_RANK_EXIT,
     "{\"attempt\": 1, \"rank\": 2, \"pid\": 3, \"status\": null, "
     "\"signal\": 9, \"cause\": null, \"phase\": \"run\", \"stderr_lines\": "
     "[\"a\", \"b\"]}"},
    {RF_MSG_ABORT, "{\"attempt\": 1, \"reason\": \"r\"}"},
    {RF_MSG_ABORTED,
     "{\"attempt\": 1, \"unkillable\": [17], \"unanswered\": [0, 5]}"},
    {RF_MSG_SHUTDOWN, "{\"gone\": [\"0a.1b.2.3\"]}"},
    {RF_MSG_ERROR, "{\"text\": \"t\"}"},
};
#define N_EXAMPLES ((int)RF_ARRAY_SIZE(examples))

static enum rf_status read_text(enum rf_msg_type type, const char *text,
                                struct rf_msg *out, struct rf_err *err)
{
    const struct rf_frame frame = {.type = (uint8_t)type,
                                   .length = (uint32_t)strlen(text),
                                   .payload = (const uint8_t *)text};
    return rf_msg_read(&frame, out, err);
}

TEST(test_messages_have_an_example_each)
{
    bool seen[256] = {false};
    for (size_t i = 0; i < RF_ARRAY_SIZE(examples); i++) {
        seen[examples[i].type] = true;
    }
#define X(name, number, cap)                                                   \
    ck_assert_msg(seen[number] || (number) == RF_MSG_LOG, #name);
    RF_MSG_MAP(X)
#undef X
}

LOOP_TEST(test_messages_encode_what_they_decoded, N_EXAMPLES)
{
    json_auto_t *wanted = json_loads(examples[_i].text, 0, NULL), *got;
    AUTO(rf_msg) message;
    struct rf_err err = {.text = ""};
    AUTO_FREE char *shown;
    ck_assert_ptr_nonnull(wanted);
    assert_ok(read_text(examples[_i].type, examples[_i].text, &message, &err),
              err);
    ck_assert_int_eq(message.type, examples[_i].type);
    got = rf_msg_json(&message);
    shown = json_dumps(got, 0);
    ck_assert_msg(json_equal(got, wanted), "%s", shown);
}

/* What is read without JSON values is what parsing gives. */
static void check_plain(enum rf_msg_type type, const char *text)
{
    const struct rf_frame frame = {.type = (uint8_t)type,
                                   .length = (uint32_t)strlen(text),
                                   .payload = (const uint8_t *)text};
    json_auto_t *payload = NULL, *plain, *parsed;
    AUTO(rf_msg) message, other;
    rf_msg_init(&other, type);
    if (rf_msg_read_plain(&frame, &message)) {
        ck_assert_msg(rf_msg_parse(&frame, &payload, NULL) == RF_OK &&
                          rf_msg_decode(type, payload, &other, NULL) == RF_OK,
                      "%s", text);
    }
    plain = rf_msg_json(&message); /* empty where it was refused */
    parsed = rf_msg_json(&other);
    ck_assert_msg(json_equal(plain, parsed), "%s", text);
}

/* Each example with one of its bytes changed, then the same with all spaces
 * between members gone. */
LOOP_TEST(test_messages_are_read_plainly_as_they_are_parsed, N_EXAMPLES)
{
    static const char others[] = "\"\\0-1.e,:{}[] n\n\x7f\xc3";
    AUTO_FREE char *text = strdup(examples[_i].text);
    for (int round = 0; round < 2; round++) {
        check_plain(examples[_i].type, text);
        for (size_t at = 0; text[at] != '\0'; at++) {
            const char was = text[at];
            for (const char *c = others; *c != '\0'; c++) {
                text[at] = *c;
                check_plain(examples[_i].type, text);
            }
            text[at] = was;
        }
        for (char *from = text, *to = text;; from++) {
            if (from[0] != ' ' || (from[-1] != ',' && from[-1] != ':')) {
                *to++ = *from;
            }
            if (*from == '\0') {
                break;
            }
        }
    }
}

/* What comes from every node at a barrier, and what does not look like it. */
static const struct {
    const char *text;
    bool plain;
} dones[] = {
    {"{\"attempt\":1,\"seq\":7,\"ok\":true,\"ranks\":[]}", true},
    {" { \"seq\" : 7 , \"attempt\" : 1, \"ranks\": null }\n", true},
    {"{\"attempt\":1,\"seq\":7,\"ranks\":[{\"rank\":0,\"ok\":true,\"ran\":{"
     "\"start_ns\":-5,\"end_ns\":10,\"ns\":15,\"pack_ns\":1,\"wire_ns\":2,"
     "\"unpack_ns\":3,\"sync_ns\":0,\"sent_bytes\":4,\"received_bytes\":5}},"
     "{\"rank\":1,\"error\":\"died\"}]}",
     true},
    {"{\"attempt\":1,\"seq\":7,\"seq\":7,\"ranks\":[]}", false},
    {"{\"attempt\":1,\"seq\":7,\"ranks\":[],\"later\":0}", false},
    {"{\"attempt\":1,\"ranks\":[]}", false},
    {"{\"attempt\":1,\"seq\":null,\"ranks\":[]}", false},
    {"{\"attempt\":1,\"seq\":07,\"ranks\":[]}", false},
    {"{\"attempt\":1,\"seq\":1234567890123456789,\"ranks\":[]}", false},
    {"{\"attempt\":1,\"seq\":7,\"ranks\":[]} x", false},
    {"{\"attempt\":1,\"seq\":7,\"ranks\":[],}", false},
    {"{\"attempt\":1,\"seq\":7,\"ranks\":[{\"rank\":0,\"error\":\"\\n\"}]}",
     false},
};

LOOP_TEST(test_messages_of_a_barrier_are_read_without_json,
          RF_ARRAY_SIZE(dones))
{
    const char *text = dones[_i].text;
    const struct rf_frame frame = {.type = RF_MSG_DONE,
                                   .length = (uint32_t)strlen(text),
                                   .payload = (const uint8_t *)text};
    AUTO(rf_msg) message;
    ck_assert_int_eq(rf_msg_read_plain(&frame, &message), dones[_i].plain);
    check_plain(RF_MSG_DONE, text);
}

/* Paths of members of the examples, whatever they hold. */
static json_t *parent_of(json_t *value, const char *path, const char **key)
{
    char part[64];
    const char *dot;
    while ((dot = strchr(path, '.')) != NULL) {
        snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
        value = json_object_get(value, part);
        value = json_is_array(value) ? json_array_get(value, 0) : value;
        ck_assert_ptr_nonnull(value);
        path = dot + 1;
    }
    *key = path;
    return value;
}

static const struct {
    enum rf_msg_type type;
    const char *path, *value, *why; /* value NULL: missing */
} refused[] = {
    {RF_MSG_BOOT, "protocol", NULL, "BOOT: $.protocol: is missing"},
    {RF_MSG_BOOT, "node", "4096",
     "BOOT: $.node: must be an integer from 0 to 4095"},
    {RF_MSG_BOOT, "psk", "\"5ec7e7\"",
     "BOOT: $.psk: must be a string of 64 bytes"},
    {RF_MSG_BOOT, "candidates.port", "0",
     "BOOT: $.candidates[0].port: must be an integer from 1 to 65535"},
    {RF_MSG_BOOT, "limits.abort_grace_ms", "-1",
     "BOOT: $.limits.abort_grace_ms: must be an integer from 1 to 86400000"},
    {RF_MSG_BOOT, "shared.folders", "[5]",
     "BOOT: $.shared.folders[0]: must be a string of at most 4096 bytes"},
    {RF_MSG_BOOT, "env", "{\"A\": 1}",
     "BOOT: $.env.A: must be a string of at most 65536 bytes"},
    {RF_MSG_HELLO, "nics.address", NULL,
     "HELLO: $.nics[0].address: is missing"},
    {RF_MSG_HELLO, "memory_bytes", "-1",
     "HELLO: $.memory_bytes: must be an integer, 0 or more"},
    {RF_MSG_HELLO, "folders.sees", "[4096]",
     "HELLO: $.folders[0].sees[0]: must be an integer from 0 to 4095"},
    {RF_MSG_INSPECT, "folder", "\"\"",
     "INSPECT: $.folder: must be a string of 1 to 4096 bytes"},
    {RF_MSG_INSPECT, "timeout_s", "0",
     "INSPECT: $.timeout_s: must be an integer from 1 to 86400"},
    {RF_MSG_HEADERS, "digests", "{\"a\": 1}",
     "HEADERS: $.digests.a: must be a string of at most 32 bytes"},
    {RF_MSG_HEADERS, "headers", "[]", "HEADERS: $.headers: must be an object"},
    {RF_MSG_WELCOME, "protocol", "\"2\"",
     "WELCOME: $.protocol: must be an integer from 1 to 255"},
    {RF_MSG_START, "nodes", "[]",
     "START: $.nodes: must be a list of 1 to 4096"},
    {RF_MSG_START, "model", "7", "START: $.model: must be an object"},
    {RF_MSG_START, "data_key", NULL, "START: $.data_key: is missing"},
    {RF_MSG_START, "test.exit.signal", "65",
     "START: $.test.exit.signal: must be an integer from 1 to 64"},
    {RF_MSG_STEP, "timeout_s", "-0.5",
     "STEP: $.timeout_s: must be a number from 0 to 1e+12"},
    {RF_MSG_DONE, "ranks.prepared.arena_bytes.infer", NULL,
     "DONE: $.ranks[0].prepared.arena_bytes.infer: is missing"},
    {RF_MSG_DONE, "ranks.ran.end_ns", "9223372036854775807",
     "DONE: $.ranks[0].ran.end_ns: must be an integer from "
     "-2305843009213693952 to 2305843009213693952"},
    {RF_MSG_DONE, "ranks.verified.first.index", "[-1]",
     "DONE: $.ranks[0].verified.first.index[0]: must be an integer, 0 or more"},
    {RF_MSG_EXCHANGE, "parts.rank", "4194304",
     "EXCHANGE: $.parts[0].rank: must be an integer from 0 to 4194303"},
    {RF_MSG_EXCHANGED, "data", "[\"5ec7e7\", null]",
     "EXCHANGED: $.data[1]: must be a string of at most 16777216 bytes"},
    {RF_MSG_LEASE, "t", NULL, "LEASE: $.t: is missing"},
    {RF_MSG_LEASE, "t", "9223372036854775807",
     "LEASE: $.t: must be an integer from 0 to 2305843009213693952"},
    {RF_MSG_LEASE, "echo_at", "9223372036854775807",
     "LEASE: $.echo_at: must be an integer from 0 to 2305843009213693952"},
    {RF_MSG_RANK_EXIT, "stderr_lines", "\"a\"",
     "RANK_EXIT: $.stderr_lines: must be a list of at most 64"},
    {RF_MSG_ABORT, "reason", "{}",
     "ABORT: $.reason: must be a string of at most 4096 bytes"},
    {RF_MSG_ABORTED, "unkillable", NULL, "ABORTED: $.unkillable: is missing"},
    {RF_MSG_ERROR, "text", "null", "ERROR: $.text: is missing"},
    {RF_MSG_ERROR, "text", "\"\"",
     "ERROR: $.text: must be a string of 1 to 4096 bytes"},
};

static json_t *spoiled(size_t which)
{
    const char *key, *value = refused[which].value;
    json_t *whole = NULL, *parent;
    for (size_t i = 0; i < RF_ARRAY_SIZE(examples); i++) {
        if (examples[i].type == refused[which].type) {
            whole = json_loads(examples[i].text, 0, NULL);
        }
    }
    parent = parent_of(whole, refused[which].path, &key);
    if (value == NULL) {
        ck_assert_int_eq(json_object_del(parent, key), 0);
    } else {
        ck_assert_int_eq(
            json_object_set_new(parent, key,
                                json_loads(value, JSON_DECODE_ANY, NULL)),
            0);
    }
    return whole;
}

LOOP_TEST(test_messages_are_refused_with_the_path, RF_ARRAY_SIZE(refused))
{
    json_auto_t *payload = spoiled((size_t)_i);
    struct rf_msg message;
    struct rf_err err = {.text = ""};
    AUTO_FREE char *text;
    ck_assert_int_eq(rf_msg_decode(refused[_i].type, payload, &message, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text, refused[_i].why);
    /* Keys are wiped also where the message is not taken. */
    text = json_dumps(payload, 0);
    ck_assert_ptr_null(strstr(text, "00112233"));
    ck_assert_ptr_null(strstr(text, "5ec7e7"));
}

LOOP_TEST(test_messages_leave_no_secret_in_the_document, N_EXAMPLES)
{
    json_auto_t *payload = json_loads(examples[_i].text, 0, NULL);
    AUTO(rf_msg) message;
    AUTO_FREE char *text;
    ck_assert_int_eq(rf_msg_decode(examples[_i].type, payload, &message, NULL),
                     RF_OK);
    text = json_dumps(payload, 0);
    ck_assert_ptr_null(strstr(text, "00112233"));
    ck_assert_ptr_null(strstr(text, "5ec7e7"));
}

/* More parts than a node can have ranks. */
TEST(test_messages_with_huge_lists_are_refused)
{
    json_t *payload =
               json_pack("{s:i, s:i, s:[]}", "attempt", 1, "seq", 1, "ranks"),
           *ranks = json_object_get(payload, "ranks");
    AUTO(rf_msg) message;
    struct rf_err err = {.text = ""};
    for (int i = 0; i <= 65536; i++) {
        json_array_append_new(ranks, json_pack("{s:i}", "rank", i));
    }
    ck_assert_int_eq(rf_msg_decode(RF_MSG_DONE, payload, &message, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text,
                     "DONE: $.ranks: must be a list of at most 65536");
    json_array_remove(ranks, 0);
    assert_ok(rf_msg_decode(RF_MSG_DONE, payload, &message, &err), err);
    ck_assert_uint_eq(message.done.n_ranks, 65536);
    ck_assert_uint_eq(message.done.ranks[65535].rank, 65536);
    json_decref(payload);
}

LOOP_TEST(test_messages_are_refused_wherever_they_end, N_EXAMPLES)
{
    const char *text = examples[_i].text;
    for (size_t size = 0; size < strlen(text); size++) {
        AUTO_FREE char *part = strndup(text, size);
        struct rf_msg message;
        struct rf_err err = {.text = ""};
        ck_assert_int_eq(read_text(examples[_i].type, part, &message, &err),
                         RF_ERR_PROTOCOL);
        ck_assert_ptr_null(strstr(err.text, "0011"));
    }
}

TEST(test_messages_without_members)
{
    struct rf_msg message;
    ck_assert_int_eq(read_text(RF_MSG_LOG, "{}", &message, NULL),
                     RF_ERR_PROTOCOL);
    ck_assert_int_eq(read_text((enum rf_msg_type)99, "{}", &message, NULL),
                     RF_ERR_PROTOCOL);
    ck_assert_ptr_null(rf_msg_schema(RF_MSG_LOG));
    ck_assert_ptr_null(rf_msg_schema(0));
}

/* --- docs/PROTOCOL.md ----------------------------------------------------- */

#define DOCUMENT "docs/PROTOCOL.md"
#define BEGINNING "<!-- messages: begin -->\n"
#define ENDING "<!-- messages: end -->\n"

static char *document(void)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(DOCUMENT, "re");
    size_t size;
    ck_assert_msg(file != NULL, "run in the root of the source tree");
    size = fread(text, 1, (1 << 20) - 1, file);
    ck_assert_uint_lt(size, (1 << 20) - 1);
    fclose(file);
    return text;
}

/* The document with the reference that the schemas give. */
static char *document_wanted(const char *have)
{
    char *wanted = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&wanted, &size);
    const char *begin = strstr(have, BEGINNING), *end = strstr(have, ENDING);
    ck_assert_msg(begin != NULL && end > begin,
                  DOCUMENT " has lost the lines around the reference");
    begin += strlen(BEGINNING);
    fwrite(have, 1, (size_t)(begin - have), to);
    fputc('\n', to);
    reference_print_messages(to);
    fputs(end, to);
    fclose(to);
    return wanted;
}

CASE("reference")

TEST(test_messages_are_documented_as_they_are)
{
    AUTO_FREE char *have = document(), *wanted = document_wanted(have);
    if (getenv("RF_WRITE_REFERENCE") != NULL) {
        ck_assert_int_eq(rf_store(DOCUMENT, wanted, strlen(wanted), NULL),
                         RF_OK);
    } else {
        ck_assert_msg(strcmp(have, wanted) == 0,
                      DOCUMENT " does not describe the messages of "
                               "transport/control/message_fields.h; run `make "
                               "protocol-reference`");
    }
}
