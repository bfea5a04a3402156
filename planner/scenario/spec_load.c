/* Reads "load". See spec_load.h. */
#include "planner/scenario/spec_load.h"

#include <stddef.h>
#include <string.h>

#include "common/json_schema.h"

#define LEAST_RATE 0.01 /* GB/s */
#define MOST_RATE 1e6
#define MOST_CORES 1024

#define UNLIMITED "max"

static enum rf_status read_rate(const struct rf_jnode *object, void *out,
                                const struct rf_spec_nodes *nodes,
                                struct rf_err *err)
{
    const struct rf_jnode rate = rf_jnode_get(object, "memory_gbytes_per_s");
    const char *word = json_string_value(rate.value);
    const double number = json_number_value(rate.value); /* 0: is none */
    (void)nodes;
    if (word != NULL && strcmp(word, UNLIMITED) == 0) {
        return RF_OK;
    }
    if (number < LEAST_RATE || number > MOST_RATE) {
        return rf_jnode_wrong(
            &rate, err,
            "must be a number from %g to %.0f, or \"" UNLIMITED "\"",
            LEAST_RATE, MOST_RATE);
    }
    ((struct rf_load_spec *)out)->memory_gbytes_per_s = number;
    return RF_OK;
}

static json_t *write_rate(const void *in, const struct rf_spec_nodes *nodes)
{
    const double rate = ((const struct rf_load_spec *)in)->memory_gbytes_per_s;
    (void)nodes;
    return rate > 0 ? json_real(rate) : json_string(UNLIMITED);
}

static json_t *rate_schema(void)
{
    static const char *const words[] = {UNLIMITED, NULL};
    return rf_json_schema_either(rf_json_schema_number(LEAST_RATE, MOST_RATE),
                                 rf_json_schema_words(words, NULL));
}

#define AT(member) .offset = offsetof(struct rf_load_spec, member)

const struct rf_spec_field rf_load_fields[] = {
    {"memory_gbytes_per_s", .required = true, .read = read_rate,
     .write = write_rate, .schema = rate_schema},
    {"on", RF_SPEC_WORD, AT(on),
     .words = (const char *const[]){"infer", "train", "all", NULL}},
    {"cores", RF_SPEC_U32, AT(cores), .least = 1, .most = MOST_CORES,
     .standard = 1},
    {.key = NULL}};
