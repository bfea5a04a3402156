/* What a node answers when it is asked for a checkpoint's headers. */
#include "worker/helper/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_msg, rf_msg_free)

static char folder[64];

static void enter(void)
{
    static const char file[] = "\x45\0\0\0\0\0\0\0"
                               "{\"one\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                               "\"data_offsets\":[0,24]}}             ";
    static const uint8_t data[24];
    FILE *out;
    strcpy(folder, "/tmp/refit-inspect-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    out = fopen("a.safetensors", "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(file, 1, 8 + 0x45, out), 8 + 0x45);
    ck_assert_uint_eq(fwrite(data, 1, sizeof(data), out), sizeof(data));
    ck_assert_int_eq(fclose(out), 0);
}

static void leave(void)
{
    unlink("a.safetensors");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
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

FIXTURE(enter, leave)

LOOP_TEST(test_inspect_sends_headers_only_where_they_are_wanted, 2)
{
    AUTO(rf_msg) answer;
    ask(folder, _i == 1, &answer);
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
    FILE *out = fopen("a.safetensors", "w");
    memset(name, 'a', length);
    name[length] = '\0';
    head = rf_xasprintf("{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
                        "\"data_offsets\":[0,1]}}",
                        name);
    size = strlen(head);
    ck_assert_uint_eq(fwrite(&size, 1, sizeof(size), out), sizeof(size));
    ck_assert_uint_eq(fwrite(head, 1, size + 1, out), size + 1);
    ck_assert_int_eq(fclose(out), 0);
    free(head);
    free(name);
    ask(folder, true, &answer);
    ck_assert_ptr_nonnull(answer.headers.error);
    ck_assert_msg(strstr(answer.headers.error,
                         "the limit is 65536 (one message)") != NULL,
                  "%s", answer.headers.error);
    rf_msg_free(&answer);
    ask(folder, false, &answer);
    ck_assert_ptr_null(answer.headers.error);
    rf_msg_free(&answer);
}
