/* Message names, caps and payloads. */
#include <string.h>

#include "tests/unit/unit.h"
#include "transport/control/message_types.h"

TEST(test_msg_has_a_name_and_a_cap_for_each_type)
{
    ck_assert_str_eq(rf_msg_name(RF_MSG_BOOT), "BOOT");
    ck_assert_str_eq(rf_msg_name(RF_MSG_ERROR), "ERROR");
    ck_assert_uint_eq(rf_msg_cap(RF_MSG_START), 64u << 20);
    ck_assert_uint_eq(rf_msg_cap(RF_MSG_LEASE), 4096);
#define X(name, number, cap)                                                   \
    ck_assert_str_eq(rf_msg_name(number), #name);                              \
    ck_assert_uint_eq(rf_msg_cap(number), cap);
    RF_MSG_MAP(X)
#undef X
}

LOOP_TEST(test_msg_of_unknown_type_has_neither, 4)
{
    static const uint8_t types[] = {0, 20, 77, 255};
    ck_assert_ptr_null(rf_msg_name(types[_i]));
    ck_assert_uint_eq(rf_msg_cap(types[_i]), 0);
}

static enum rf_status parse(uint8_t type, const char *text, size_t size,
                            json_t **out, struct rf_err *err)
{
    struct rf_frame frame = {.type = type,
                             .length = (uint32_t)size,
                             .payload = (const uint8_t *)text};
    return rf_msg_parse(&frame, out, err);
}

TEST(test_msg_parses_an_object)
{
    static const char text[] = "{\"protocol\": 1, \"later\": []}";
    json_auto_t *value = NULL;
    ck_assert_int_eq(
        parse(RF_MSG_WELCOME, text, sizeof(text) - 1, &value, NULL), RF_OK);
    ck_assert_int_eq(json_integer_at(value, "protocol"), 1);
}

LOOP_TEST(test_msg_refuses_bad_payloads, 12)
{
    static const struct {
        const char *text;
        size_t size;
    } bad[] = {
        {"", 0},
        {"[]", 2},
        {"1", 1},
        {"null", 4},
        {"{}x", 3},
        {"{\"a\": 1, \"a\": 2}", 16},
        {"{\"a\": \"\\u0000\"}", 15},
        {"{\"a\": \"\xff\"}", 10},
        {"{}\0", 3},
        {"{\"a\": NaN}", 10},
        {"{\"a\": 9223372036854775808}", 26},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 43},
    };
    json_t *value = NULL;
    struct rf_err err = {0};
    ck_assert_uint_eq(sizeof(bad) / sizeof(bad[0]), 12);
    ck_assert_int_eq(
        parse(RF_MSG_HELLO, bad[_i].text, bad[_i].size, &value, &err),
        RF_ERR_PROTOCOL);
    ck_assert_ptr_null(value);
    assert_says(err.text, "HELLO");
}

TEST(test_msg_errors_never_quote_the_payload)
{
    static const char text[] = "{\"psk\": \"0123abcd\" \"5ec7e7\"}";
    json_t *value = NULL;
    struct rf_err err = {0};
    ck_assert_int_eq(parse(RF_MSG_BOOT, text, sizeof(text) - 1, &value, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_ptr_null(strstr(err.text, "5ec7e7"));
    ck_assert_ptr_null(strstr(err.text, "0123abcd"));
}

TEST(test_msg_log_is_not_json)
{
    json_t *value = NULL;
    struct rf_err err = {0};
    ck_assert_int_eq(parse(RF_MSG_LOG, "{}", 2, &value, &err), RF_ERR_PROTOCOL);
    ck_assert_int_eq(parse(99, "{}", 2, &value, &err), RF_ERR_PROTOCOL);
}
