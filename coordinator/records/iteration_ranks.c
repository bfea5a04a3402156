/* Figures of ranks in an iteration, as numbers. See iteration_ranks.h. */
#include "coordinator/records/iteration_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "coordinator/records/fields.h"

#define NS(key, member, optional)                                              \
    {                                                                          \
        key, offsetof(struct rf_iteration_rank, member), 6, optional, false    \
    }

const struct rf_iteration_rank_field
    rf_iteration_rank_fields[RF_ITERATION_RANK_FIELDS] = {
        NS("ms", ns, false),
        NS("pack_ms", pack_ns, false),
        NS("wire_ms", wire_ns, false),
        NS("unpack_ms", unpack_ns, false),
        NS("sync_ms", sync_ns, false),
        NS("unattributed_ms", unattributed_ns, false),
        NS("device_ms", device_ns, true),
        NS("quantize_ms", quantize_ns, true),
        NS("amax_ms", amax_ns, true),
        {"start_us", offsetof(struct rf_iteration_rank, start_ns), 3, false,
         false},
        {"sent_bytes", offsetof(struct rf_iteration_rank, sent_bytes), 0, false,
         false},
        {"received_bytes", offsetof(struct rf_iteration_rank, received_bytes),
         0, false, false},
        {"load_alone_ms", offsetof(struct rf_iteration_rank, load_alone_ns), 6,
         true, true},
        {"load_alone_bytes",
         offsetof(struct rf_iteration_rank, load_alone_bytes), 0, true, true},
        {"load_ms", offsetof(struct rf_iteration_rank, load_ns), 6, true, true},
        {"load_bytes", offsetof(struct rf_iteration_rank, load_bytes), 0, true,
         true}};

/* Never in text read from a file: these bytes are not UTF-8. */
static const char mark[sizeof(int64_t)] = "\xff\xff\xff\xff\xff\xff\xff";

json_t *rf_iteration_ranks_json(const struct rf_iteration_rank *ranks, size_t n)
{
    const size_t size = n * sizeof(*ranks);
    char *bytes = rf_xmalloc(sizeof(mark) + size);
    json_t *out;
    memcpy(bytes, mark, sizeof(mark));
    memcpy(bytes + sizeof(mark), ranks, size);
    out = json_stringn_nocheck(bytes, sizeof(mark) + size);
    free(bytes);
    return out;
}

json_t *rf_iteration_rank_schema(bool under_load)
{
    json_t *out = rf_json_schema_record("rank:count");
    for (size_t i = 0; i < RF_ITERATION_RANK_FIELDS; i++) {
        const struct rf_iteration_rank_field *f = &rf_iteration_rank_fields[i];
        if (under_load || !f->under_load) {
            rf_json_schema_describe(
                out, f->key, f->optional ? RF_OPTIONAL : RF_REQUIRED,
                f->decimals > 0 ? rf_json_schema_type("number")
                                : rf_json_schema_count());
        }
    }
    return out;
}

const struct rf_iteration_rank *rf_iteration_ranks_numbers(const json_t *ranks,
                                                           size_t *n)
{
    const char *bytes = json_string_value(ranks);
    const size_t size = json_string_length(ranks);
    if (size < sizeof(mark) || memcmp(bytes, mark, sizeof(mark)) != 0) {
        return NULL;
    }
    *n = (size - sizeof(mark)) / sizeof(struct rf_iteration_rank);
    return (const void *)(bytes + sizeof(mark)); /* aligned by malloc */
}

bool rf_iteration_rank_number(const struct rf_iteration_rank *rank,
                              const struct rf_iteration_rank_field *field,
                              int64_t *out)
{
    memcpy(out, (const char *)rank + field->offset, sizeof(*out));
    return *out != RF_ITERATION_RANK_ABSENT;
}

bool rf_iteration_ranks_value(const json_t *ranks, size_t rank, const char *key,
                              double *out)
{
    static const double units[] = {[0] = 1, [3] = 1e3, [6] = 1e6};
    const struct rf_iteration_rank_field *field = rf_iteration_rank_fields;
    size_t n;
    const struct rf_iteration_rank *numbers =
        rf_iteration_ranks_numbers(ranks, &n);
    int64_t number;
    if (numbers == NULL) {
        return rf_result_number(json_array_get(ranks, rank), NULL, key, out);
    }
    while (strcmp(field->key, key) != 0) {
        field++;
    }
    if (rank >= n ||
        !rf_iteration_rank_number(&numbers[rank], field, &number)) {
        return false;
    }
    *out = (double)number / units[field->decimals];
    return true;
}
