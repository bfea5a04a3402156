/* The command that runs a scenario again. */
#ifndef RF_COORDINATOR_RECORDS_REPLAY_H
#define RF_COORDINATOR_RECORDS_REPLAY_H

#include <jansson.h>
#include <stdint.h>

/* `refit-coord rerun` for the record that is, or will be, at `path`, with as
 * many repeats, every word quoted for a shell as far as it needs that.
 * `program` is what runs refit-coord. To be freed. */
char *rf_replay_command(const char *program, const char *path,
                        uint32_t n_repeats);

/* The same for a record that was read from `path`; NULL where `rerun` would
 * refuse it, since the scenario never had a plan. */
char *rf_replay_of_record(const char *program, const char *path,
                          const json_t *record);

#endif
