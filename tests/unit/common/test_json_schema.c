/* Objects whose members are listed once. */
#include "common/json_schema.h"
#include "tests/unit/unit.h"

#define LINK(M)                                                                \
    M(TEXT, host, REQUIRED, json_string("a"))                                  \
    M(NUMBER, gbytes_per_s, NULLABLE, rate > 0 ? json_real(rate) : NULL)       \
    M(OF(rf_json_schema_any_list(rf_json_schema_count())), ports, OPTIONAL,    \
      port > 0 ? json_pack("[i]", port) : NULL)

RF_MEMBERS_SCHEMA(link_schema, LINK)

static json_t *link_json(double rate, int port)
{
    json_t *out = json_object();
    LINK(RF_PUT);
    return out;
}

TEST(test_schema_members_without_a_value_are_null_or_left_out)
{
    json_auto_t *all = link_json(0.5, 7), *none = link_json(0, 0);
    json_auto_t *all_wanted = json_pack("{s:s, s:f, s:[i]}", "host", "a",
                                        "gbytes_per_s", 0.5, "ports", 7);
    json_auto_t *none_wanted =
        json_pack("{s:s, s:n}", "host", "a", "gbytes_per_s");
    ck_assert(json_equal(all, all_wanted));
    ck_assert(json_equal(none, none_wanted));
}

TEST(test_schema_members_are_described_as_they_are_written)
{
    json_auto_t *got = link_schema(), *want;
    want = json_pack(
        "{s:s, s:b, s:[s, s], s:{s:{s:s}, s:{s:[{s:s}, {s:s}]}, s:o}}", "type",
        "object", "additionalProperties", 0, "required", "host", "gbytes_per_s",
        "properties", "host", "type", "string", "gbytes_per_s", "anyOf", "type",
        "number", "type", "null", "ports",
        rf_json_schema_any_list(rf_json_schema_count()));
    ck_assert(json_equal(got, want));
}

TEST(test_schema_drops_a_key_that_was_required)
{
    json_auto_t *got =
        rf_json_schema_record("host:string rank:count slot:count");
    json_auto_t *want = rf_json_schema_record("host:string slot:count");
    rf_json_schema_drop(got, "rank");
    ck_assert(json_equal(got, want));
}
