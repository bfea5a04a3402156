/*
 * `ranks[]` of an iteration. A record that is made keeps numbers there until it
 * is written: thousands of ranks over many iterations make millions of JSON
 * values, at more than ten times the memory. Jansson carries the numbers as the
 * bytes of a string, so they are copied, shared and freed like any other value.
 */
#ifndef RF_COORDINATOR_RECORDS_ITERATION_RANKS_H
#define RF_COORDINATOR_RECORDS_ITERATION_RANKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RF_ITERATION_RANK_ABSENT INT64_MIN

/* What one rank did in one iteration; its number is its place. */
struct rf_iteration_rank {
    int64_t ns, pack_ns, wire_ns, unpack_ns, sync_ns, unattributed_ns;
    int64_t device_ns; /* or absent */
    int64_t start_ns;  /* after the first rank's */
    int64_t sent_bytes, received_bytes;
};

/* Of an entry of `ranks[]`, after `rank`. */
struct rf_iteration_rank_field {
    const char *key;
    size_t offset;     /* in struct rf_iteration_rank */
    unsigned decimals; /* of the nanoseconds in the key's unit; 0: bytes */
};

/* In the order of the file. */
#define RF_ITERATION_RANK_FIELDS 10
extern const struct rf_iteration_rank_field
    rf_iteration_rank_fields[RF_ITERATION_RANK_FIELDS];

/* A value of `ranks` that holds numbers. A new reference. */
json_t *rf_iteration_ranks_json(const struct rf_iteration_rank *ranks,
                                size_t n);

/* The numbers in it, borrowed; NULL where it holds objects, as in a record that
 * was read. */
const struct rf_iteration_rank *rf_iteration_ranks_numbers(const json_t *ranks,
                                                           size_t *n);

/* The number that a field stands for; false where the rank has none. */
bool rf_iteration_rank_number(const struct rf_iteration_rank *rank,
                              const struct rf_iteration_rank_field *field,
                              int64_t *out);

/* A figure of a rank, of numbers or of objects, in the unit of its key; false
 * where there is none. */
bool rf_iteration_ranks_value(const json_t *ranks, size_t rank, const char *key,
                              double *out);

#endif
