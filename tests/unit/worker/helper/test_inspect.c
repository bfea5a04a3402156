/* What a node answers when it is asked for a checkpoint's headers. */
#include "worker/helper/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_msg, rf_msg_free)

static void setup(void)
{
    static const char file[8 + 0x45 + 24] =
        "\x45\0\0\0\0\0\0\0"
        "{\"one\":{\"dtype\":\"F32\",\"shape\":[2,3],"
        "\"data_offsets\":[0,24]}}             ";
    fake_root_make();
    fake_root_write_bytes("a.safetensors", file, sizeof(file));
}

#define MOST_BYTES (1u << 16)

/* As it arrives at the coordinator. */
static void ask(const char *path, bool whole, struct rf_msg *out)
{
    const struct rf_inspection inspection = {path, whole};
    AUTO(rf_msg) answer;
    struct rf_err err = {0};
    json_auto_t *payload;
    rf_inspect(&inspection, MOST_BYTES, &answer);
    payload = rf_msg_json(&answer);
    assert_ok(rf_msg_decode(RF_MSG_HEADERS, payload, out, &err), err);
}

FIXTURE(setup, fake_root_remove)

LOOP_TEST(test_inspect_sends_headers_only_where_they_are_wanted, 2)
{
    AUTO(rf_msg) answer;
    ask(fake_root, _i == 1, &answer);
    ck_assert_msg(answer.headers.error == NULL, "%s", answer.headers.error);
    ck_assert_uint_eq(answer.headers.digests.n, 1);
    ck_assert_str_eq(answer.headers.digests.list[0].key, "a.safetensors");
    ck_assert_int_eq(answer.headers.headers != NULL, _i == 1);
    if (_i == 1) {
        ck_assert_ptr_nonnull(json_at(answer.headers.headers, "manifest.one"));
    }
}

TEST(test_inspect_says_which_folder_is_missing)
{
    AUTO(rf_msg) answer;
    ask("/tmp/refit-absent/model", true, &answer);
    ck_assert_ptr_nonnull(answer.headers.error);
    assert_says(answer.headers.error, "/tmp/refit-absent/model: No such file");
    ck_assert_ptr_null(answer.headers.headers);
}

/* A long name; the digest of its file is short. */
TEST(test_inspect_sends_no_more_than_fits_into_a_message)
{
    const size_t length = MOST_BYTES;
    char *name = rf_xmalloc(length + 1), *head;
    struct rf_msg answer;
    uint64_t size;
    memset(name, 'a', length);
    name[length] = '\0';
    head = rf_xasprintf("%8s{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
                        "\"data_offsets\":[0,1]}}",
                        "", name);
    size = strlen(head + 8);
    memcpy(head, &size, sizeof(size));
    fake_root_write_bytes("a.safetensors", head, 8 + size + 1);
    free(head);
    free(name);
    ask(fake_root, true, &answer);
    ck_assert_ptr_nonnull(answer.headers.error);
    ck_assert_msg(strstr(answer.headers.error,
                         "the limit is 65536 (one message)") != NULL,
                  "%s", answer.headers.error);
    rf_msg_free(&answer);
    ask(fake_root, false, &answer);
    ck_assert_ptr_null(answer.headers.error);
    rf_msg_free(&answer);
}
