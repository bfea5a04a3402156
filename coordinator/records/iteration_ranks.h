/*
 * `ranks[]` of an iteration. A new record keeps numbers there until it is
 * written: thousands of ranks over many iterations would make millions of JSON
 * values and take more than ten times the memory. The numbers are the bytes of
 * a Jansson string, so they are copied, shared and freed like any other value.
 */
#ifndef RF_COORDINATOR_RECORDS_ITERATION_RANKS_H
#define RF_COORDINATOR_RECORDS_ITERATION_RANKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RF_ITERATION_RANK_ABSENT INT64_MIN

/* One rank's figures in one iteration; the index is the rank. */
struct rf_iteration_rank {
    int64_t ns, pack_ns, wire_ns, unpack_ns, sync_ns, unattributed_ns;
    int64_t device_ns, quantize_ns, amax_ns; /* may be absent */
    int64_t start_ns;                        /* since the first rank's start */
    int64_t sent_bytes, received_bytes;
    int64_t load_alone_ns, load_alone_bytes; /* may be absent */
    int64_t load_ns, load_bytes;             /* likewise */
};

/* A field of an entry of `ranks[]`, after `rank`. */
struct rf_iteration_rank_field {
    const char *key;
    size_t offset;     /* in struct rf_iteration_rank */
    unsigned decimals; /* from nanoseconds to the key's unit; 0: bytes */
    bool optional;     /* may be absent */
    bool under_load;   /* is absent without load */
};

/* In file order. */
#define RF_ITERATION_RANK_FIELDS 16
extern const struct rf_iteration_rank_field
    rf_iteration_rank_fields[RF_ITERATION_RANK_FIELDS];

/* A `ranks` value that holds numbers. A new reference. */
json_t *rf_iteration_ranks_json(const struct rf_iteration_rank *ranks,
                                size_t n);

/* The JSON Schema of an entry, of a refit without load or under it. A new
 * reference. */
json_t *rf_iteration_rank_schema(bool under_load);

/* Its numbers, borrowed; NULL if it holds objects, as in a record read from a
 * file. */
const struct rf_iteration_rank *rf_iteration_ranks_numbers(const json_t *ranks,
                                                           size_t *n);

/* The value of a field; false if the rank has none. */
bool rf_iteration_rank_number(const struct rf_iteration_rank *rank,
                              const struct rf_iteration_rank_field *field,
                              int64_t *out);

/* A rank's figure, from numbers or objects, in the unit of its key; false if
 * there is none. */
bool rf_iteration_ranks_value(const json_t *ranks, size_t rank, const char *key,
                              double *out);

#endif
