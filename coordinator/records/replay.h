/* The command line that runs a scenario again. */
#ifndef RF_COORDINATOR_RECORDS_REPLAY_H
#define RF_COORDINATOR_RECORDS_REPLAY_H

#include <jansson.h>
#include <stdint.h>

/* `refit-coord rerun` with `n_repeats` for the record that is, or will be, at
 * `path`, quoted for a shell where needed. `program` is the command that runs
 * refit-coord. Caller frees. */
char *rf_replay_command(const char *program, const char *path,
                        uint32_t n_repeats);

/* Likewise for a record read from `path`; NULL if it has no plan, which `rerun`
 * refuses. */
char *rf_replay_of_record(const char *program, const char *path,
                          const json_t *record);

#endif
