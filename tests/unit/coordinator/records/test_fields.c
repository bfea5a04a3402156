/* The table of fields against the records that are written. */
#include <string.h>

#include "coordinator/records/fields.h"
#include "coordinator/records/repeats.h"
#include "tests/lib/result_lab.h"
#include "tests/unit/unit.h"

static json_t *record; /* of two repeats */

static void open_record(void)
{
    struct rf_result_run run;
    struct rf_msg_topology topology;
    struct rf_msg_hello hello;
    AUTO(rf_attempt) *attempt;
    json_auto_t *nodes = json_array(), *one;
    result_lab_open();
    rf_schema_init(&rf_msg_topology_schema, &topology);
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.topology = &topology;
    json_array_append_new(nodes, rf_result_json_node("a", &hello));
    run = (struct rf_result_run){.config = result_lab.config,
                                 .model = result_lab.model,
                                 .run_id = "0123",
                                 .maker = result_lab.settings.maker,
                                 .environment = nodes};
    attempt = result_lab_attempt(0);
    attempt->closed = true;
    attempt->ranks[0].host_peak_bytes = 5000;
    attempt->ranks[0].has_device = true;
    attempt->ranks[0].has_stages = true;
    snprintf(attempt->registration.text, RF_REGISTRATION_SIZE, "buffers");
    one = rf_result_json(&run, attempt);
    record = rf_repeats_add(one, one, 1);
}

static void close_record(void)
{
    json_decref(record);
    result_lab_close();
}

/* What the field is in the record, of a list in its first entry. */
static const json_t *written(const struct rf_result_field *field)
{
    const json_t *part =
        field->object != NULL ? json_object_get(record, field->object) : NULL;
    return json_is_array(part)
               ? json_object_get(json_array_get(part, 0), field->key)
               : rf_result_value(record, field->object, field->key);
}

FIXTURE(open_record, close_record)

TEST(test_fields_are_written_as_what_they_are)
{
    for (const struct rf_result_field *field = rf_result_fields;
         field->key != NULL; field++) {
        const json_t *value = written(field);
        const char *where = field->object != NULL ? field->object : "$";
        bool right;
        if (field->rare) {
            continue; /* the record has none of them */
        }
        ck_assert_msg(value != NULL, "%s.%s", where, field->key);
        switch (field->kind) {
        case RF_RESULT_TEXT:
            right = json_is_string(value);
            break;
        case RF_RESULT_TRUTH:
            right = json_is_boolean(value);
            break;
        case RF_RESULT_LIST:
            right = json_is_array(value) || json_is_object(value);
            break;
        case RF_RESULT_COUNT:
        case RF_RESULT_BYTES:
        case RF_RESULT_VERDICT:
            right = json_is_integer(value);
            break;
        default:
            right = json_is_real(value);
        }
        /* A node that is not known to the test has no facts. */
        ck_assert_msg(right || json_is_null(value), "%s.%s", where, field->key);
        ck_assert_msg(right || field->varies, "%s.%s", where, field->key);
    }
}

TEST(test_fields_names_end_in_their_unit)
{
    static const char *const units[] = {
        [RF_RESULT_BYTES] = "bytes",
        [RF_RESULT_MS] = "ms",
        [RF_RESULT_GBYTES_PER_S] = "gbytes_per_s",
        [RF_RESULT_PERCENT] = "percent",
    };
    for (const struct rf_result_field *field = rf_result_fields;
         field->key != NULL; field++) {
        const char *unit =
            field->kind < RF_ARRAY_SIZE(units) ? units[field->kind] : NULL;
        ck_assert_msg(unit == NULL || strstr(field->key, unit) != NULL,
                      "%s is no %s", field->key, unit);
    }
}

/* A narrow terminal drops one after another. */
TEST(test_fields_are_dropped_in_one_order)
{
    unsigned times[32] = {0}, n = 0;
    for (const struct rf_result_field *field = rf_result_fields;
         field->key != NULL; field++) {
        n += field->drop > 0;
        ck_assert(field->drop == 0 || field->head != NULL);
        times[field->drop]++;
    }
    ck_assert_uint_gt(n, 0);
    for (unsigned drop = 1; drop <= n; drop++) {
        ck_assert_msg(times[drop] == 1, "%u times %u", times[drop], drop);
    }
}
