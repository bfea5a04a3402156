/* BOOT, good and bad. */

#include "common/compiler.h"
#include "tests/unit/unit.h"
#include "worker/agent/boot.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define START_OF(protocol)                                                     \
    "{\"protocol\": " protocol ", \"run_id\": \"r\", \"node\": 2, "            \
    "\"nonce\": \"ab\", \"identity\": \"r/2\", \"log_level\": 3"
#define CANDIDATES                                                             \
    ", \"candidates\": [{\"address\": \"10.0.0.1\", \"port\": 4000}, "         \
    "{\"address\": \"fd00::1\", \"port\": 4001}]"
#define GOOD                                                                   \
    START_OF("[1, 9]")                                                         \
    CANDIDATES ", \"psk\": \"" KEY "\", \"env\": {\"A\": \"b\"}, "             \
               "\"limits\": {\"lease_dead_ms\": 700}}"

static enum rf_status read_text(const char *text, struct rf_boot *boot,
                                struct rf_err *err)
{
    json_t *object = json_loads(text, 0, NULL);
    struct rf_msg_boot message;
    enum rf_status status;
    ck_assert_msg(rf_schema_decode(&rf_msg_boot_schema, object, "BOOT",
                                   &message, err) == RF_OK,
                  "%s", err->text);
    json_decref(object);
    status = rf_boot_read(&message, boot, err);
    /* It was taken over. */
    ck_assert_ptr_null(message.nonce);
    ck_assert_ptr_null(message.psk);
    return status;
}

TEST(test_a_whole_boot_is_read)
{
    struct rf_boot boot;
    struct rf_err err = {.text = ""};
    assert_ok(read_text(GOOD, &boot, &err), err);
    ck_assert_uint_eq(boot.message.node, 2);
    ck_assert_str_eq(boot.message.nonce, "ab");
    ck_assert_ptr_null(boot.message.data_address);
    ck_assert_uint_eq(boot.message.n_candidates, 2);
    ck_assert_str_eq(boot.message.candidates[1].address, "fd00::1");
    ck_assert_uint_eq(boot.message.candidates[1].port, 4001);
    ck_assert(boot.has_psk);
    ck_assert_uint_eq(boot.psk[0], 0x00);
    ck_assert_uint_eq(boot.psk[31], 0xff);
    ck_assert_uint_eq(boot.limits.lease_dead_ms, 700);
    ck_assert_uint_eq(boot.limits.lease_period_ms, RF_LEASE_PERIOD_MS);
    rf_boot_free(&boot);
    ck_assert_uint_eq(boot.psk[31], 0);
}

TEST(test_a_boot_without_a_launcher_has_no_key)
{
    struct rf_boot boot;
    struct rf_err err = {.text = ""};
    assert_ok(read_text(START_OF("[9, 9]") ", \"psk\": null}", &boot, &err),
              err);
    ck_assert(!boot.has_psk);
    ck_assert_uint_eq(boot.message.n_candidates, 0);
    rf_boot_free(&boot);
}

TEST(test_the_key_does_not_stay_in_the_message)
{
    struct rf_boot boot;
    struct rf_err err = {.text = ""};
    assert_ok(read_text(GOOD, &boot, &err), err);
    ck_assert_str_eq(boot.message.psk, "");
    rf_boot_free(&boot);
}

static const struct {
    const char *text, *why;
} bad[] = {
    {START_OF("[10, 11]") "}",
     "the coordinator speaks protocol 10 to 11, this worker 9 to 9"},
    {START_OF("[0, 1]") "}",
     "the coordinator speaks protocol 0 to 1, this worker 9 to 9"},
    {START_OF("[9]") "}", "BOOT: $.protocol: must be a list of two versions"},
    {START_OF(
         "[9, 9]") ", \"psk\": \"zz112233445566778899aabbccddeeff0011223344"
                   "5566778899aabbccddeeff\"}",
     "BOOT: $.psk: must be hexadecimal"},
    {START_OF("[9, 9]") CANDIDATES "}", "BOOT: $.candidates: needs a key"},
    {START_OF("[9, 9]") ", \"shared\": {\"token\": \"../x\", \"nodes\": 2, "
                        "\"folders\": []}}",
     "BOOT: $.shared.token: must be hexadecimal"},
};

LOOP_TEST(test_bad_boots_are_refused, RF_ARRAY_SIZE(bad))
{
    struct rf_boot boot;
    struct rf_err err = {.text = ""};
    ck_assert_int_eq(read_text(bad[_i].text, &boot, &err), RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text, bad[_i].why);
}
