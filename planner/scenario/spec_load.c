/* Reads "load". See spec_load.h. */
#include "planner/scenario/spec_load.h"

#include <stddef.h>
#include <string.h>

#include "common/json_schema.h"

#define LEAST_RATE 0.01 /* GB/s */
#define MOST_RATE 1e6
#define MOST_CORES 1024

#define UNLIMITED "max"

static const char *const rate_keys[] = {"memory_gbytes_per_s",
                                        "network_gbytes_per_s"};

/* The rate of one of the keys, where it is given. */
static enum rf_status read_rate(const struct rf_jnode *object, bool network,
                                void *out, struct rf_err *err)
{
    struct rf_load_spec *load = out;
    const struct rf_jnode rate = rf_jnode_get(object, rate_keys[network]);
    const char *word = json_string_value(rate.value);
    const double number = json_number_value(rate.value); /* 0: is none */
    const bool is_max = word != NULL && strcmp(word, UNLIMITED) == 0;
    if (rate.value == NULL) {
        return RF_OK;
    }
    if (!is_max && (number < LEAST_RATE || number > MOST_RATE)) {
        return rf_jnode_wrong(
            &rate, err,
            "must be a number from %g to %.0f, or \"" UNLIMITED "\"",
            LEAST_RATE, MOST_RATE);
    }
    load->network = network;
    load->gbytes_per_s = is_max ? 0 : number;
    return RF_OK;
}

static enum rf_status read_memory(const struct rf_jnode *object, void *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err)
{
    (void)nodes;
    return read_rate(object, false, out, err);
}

static enum rf_status read_network(const struct rf_jnode *object, void *out,
                                   const struct rf_spec_nodes *nodes,
                                   struct rf_err *err)
{
    (void)nodes;
    return read_rate(object, true, out, err);
}

static json_t *write_rate(const struct rf_load_spec *load, bool network)
{
    if (load->network != network) {
        return NULL;
    }
    return load->gbytes_per_s > 0 ? json_real(load->gbytes_per_s)
                                  : json_string(UNLIMITED);
}

static json_t *write_memory(const void *in, const struct rf_spec_nodes *nodes)
{
    (void)nodes;
    return write_rate(in, false);
}

static json_t *write_network(const void *in, const struct rf_spec_nodes *nodes)
{
    (void)nodes;
    return write_rate(in, true);
}

static json_t *rate_schema(void)
{
    static const char *const words[] = {UNLIMITED, NULL};
    return rf_json_schema_either(rf_json_schema_number(LEAST_RATE, MOST_RATE),
                                 rf_json_schema_words(words));
}

#define AT(member) .offset = offsetof(struct rf_load_spec, member)

const struct rf_spec_field rf_load_fields[] = {
    {"memory_gbytes_per_s", .read = read_memory, .write = write_memory,
     .schema = rate_schema},
    {"network_gbytes_per_s", .read = read_network, .write = write_network,
     .schema = rate_schema},
    {"on", RF_SPEC_WORD, AT(on),
     .words = (const char *const[]){"infer", "train", "all", NULL}},
    {"cores", RF_SPEC_U32, AT(cores), .least = 1, .most = MOST_CORES,
     .standard = 1},
    {.key = NULL}};

uint32_t rf_load_threads(const struct rf_load_spec *load)
{
    return load->cores * (load->network ? 2 : 1);
}

enum rf_status rf_load_spec_read(const struct rf_jnode *object,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_load_spec *load, struct rf_err *err)
{
    const json_t *memory = json_object_get(object->value, rate_keys[0]);
    const json_t *network = json_object_get(object->value, rate_keys[1]);
    RF_TRY(rf_spec_fields_read(rf_load_fields, object, load, nodes, err));
    if ((memory == NULL) == (network == NULL)) {
        return rf_jnode_wrong(object, err, "must have either \"%s\" or \"%s\"",
                              rate_keys[0], rate_keys[1]);
    }
    load->given = true;
    return RF_OK;
}
