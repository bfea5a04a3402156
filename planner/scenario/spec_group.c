/* Reads "group". See spec_group.h. */
#include "planner/scenario/spec_group.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"

#define MOST_LAYERS 1000000
#define LEAST_BYTES 4096
#define MOST_BYTES (UINT64_C(1) << 50)

/* What systems ship; refit-cluster(5) has the sources. */
static const struct preset {
    const char *name;
    struct rf_group_spec group;
} presets[] = {
    {"rdt", {RF_GROUP_LAYERS, 1, 2, false}},
    {"nemo-rl", {RF_GROUP_BYTES, (UINT64_C(80) << 30) / 50, 2, false}},
    {"slime", {RF_GROUP_BYTES, UINT64_C(512) << 20, 1, true}},
    {"verl", {RF_GROUP_BYTES, UINT64_C(2048) << 20, 1, false}},
    {"vllm-nccl", {RF_GROUP_BYTES, UINT64_C(1) << 30, 2, false}},
};

/* A number and, of bytes, a unit. False: neither. */
static bool parse_size(const char *text, bool bytes, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"kB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"KiB", UINT64_C(1) << 10},
                 {"MiB", UINT64_C(1) << 20},
                 {"GiB", UINT64_C(1) << 30}};
    const uint64_t least = bytes ? LEAST_BYTES : 1;
    const uint64_t most = bytes ? MOST_BYTES : MOST_LAYERS;
    char *end;
    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    for (size_t i = 0; i < (bytes ? RF_ARRAY_SIZE(units) : 1); i++) {
        if (errno == 0 && strcmp(end, units[i].name) == 0 &&
            value <= most / units[i].bytes && value * units[i].bytes >= least) {
            *out = value * units[i].bytes;
            return true;
        }
    }
    return false;
}

static enum rf_status read_by(const struct rf_jnode *object, void *out,
                              const struct rf_spec_nodes *nodes,
                              struct rf_err *err)
{
    struct rf_group_spec *group = out;
    const struct rf_jnode by = rf_jnode_get(object, "by");
    const char *text = json_string_value(by.value);
    (void)nodes;
    if (text != NULL && strcmp(text, "layer") == 0) {
        group->by = RF_GROUP_LAYERS;
        group->size = 1;
        return RF_OK;
    }
    const bool bytes = text != NULL && strncmp(text, "bytes:", 6) == 0;
    if (text != NULL && (bytes || strncmp(text, "layers:", 7) == 0) &&
        parse_size(strchr(text, ':') + 1, bytes, &group->size)) {
        group->by = bytes ? RF_GROUP_BYTES : RF_GROUP_LAYERS;
        return RF_OK;
    }
    return rf_jnode_wrong(by.value != NULL ? &by : object, err,
                          "must be \"layer\", \"layers:N\" (1 to 1000000) or "
                          "\"bytes:SIZE\" (4 KiB to 1 PiB, in B, kB, MB, GB, "
                          "KiB, MiB or GiB)");
}

static json_t *by_schema(void)
{
    return rf_json_schema_pattern("^(layer|layers:[0-9]+|bytes:[0-9]+([kMG]?B|"
                                  "[KMG]iB)?)$",
                                  64);
}

static json_t *write_by(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_group_spec *group = in;
    (void)nodes;
    if (group->by == RF_GROUP_LAYERS && group->size == 1) {
        return json_string("layer");
    }
    return json_sprintf("%s:%" PRIu64,
                        group->by == RF_GROUP_LAYERS ? "layers" : "bytes",
                        group->size);
}

#define AT(member) .offset = offsetof(struct rf_group_spec, member)

const struct rf_spec_field rf_group_fields[] = {
    {"by", .required = true, .read = read_by, .write = write_by,
     .schema = by_schema},
    {"in_flight", RF_SPEC_U32, AT(in_flight), .least = 1,
     .most = RF_IN_FLIGHT_MAX, .standard = RF_IN_FLIGHT},
    {"serial_pp", RF_SPEC_BOOL, AT(serial_pp)},
    {.key = NULL}};

enum rf_status rf_group_spec_read(const struct rf_jnode *node,
                                  struct rf_group_spec *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err)
{
    const char *name = json_string_value(node->value);
    char known[128] = "";
    if (node->value == NULL) {
        return RF_OK;
    }
    if (name == NULL) {
        return rf_spec_fields_read(rf_group_fields, node, out, nodes, err);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(presets); i++) {
        const size_t used = strlen(known);
        if (strcmp(presets[i].name, name) == 0) {
            *out = presets[i].group;
            return RF_OK;
        }
        snprintf(known + used, sizeof(known) - used, "%s\"%s\"",
                 i > 0 ? ", " : "", presets[i].name);
    }
    return rf_jnode_wrong(node, err,
                          "must be an object such as {\"by\": \"layer\"}, or "
                          "one of %s",
                          known);
}

json_t *rf_group_spec_schema(void)
{
    const char *names[RF_ARRAY_SIZE(presets) + 1] = {NULL};
    for (size_t i = 0; i < RF_ARRAY_SIZE(presets); i++) {
        names[i] = presets[i].name;
    }
    return rf_json_schema_either(rf_json_schema_words(names),
                                 rf_spec_fields_schema(rf_group_fields));
}

json_t *rf_group_spec_write(const struct rf_group_spec *group,
                            const struct rf_spec_nodes *nodes)
{
    return group->by != RF_GROUP_NOTHING
               ? rf_spec_fields_write(rf_group_fields, group, nodes)
               : NULL;
}
