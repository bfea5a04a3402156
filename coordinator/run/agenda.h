/*
 * Which scenario a run begins next. With repeats each comes that often: all in
 * the order of cluster.json, then all again, so that a machine that drifts does
 * so under all of them. One of which a repeat was not ok does not come again.
 */
#ifndef RF_COORDINATOR_RUN_AGENDA_H
#define RF_COORDINATOR_RUN_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_run_agenda;

struct rf_run_turn {
    size_t scenario; /* of config->scenarios */
    uint32_t repeat; /* from 0 */
};

/* `skip[repeat * n_scenarios + scenario]` (may be NULL) leaves out a turn; it
 * is borrowed. */
struct rf_run_agenda *
rf_run_agenda_create(size_t n_scenarios, uint32_t n_repeats, const bool *skip);
void rf_run_agenda_destroy(struct rf_run_agenda *agenda); /* or NULL */

uint32_t rf_run_agenda_repeats(const struct rf_run_agenda *agenda);

/* The next turn but `after`; false: there is none. */
bool rf_run_agenda_left(const struct rf_run_agenda *agenda, size_t after,
                        struct rf_run_turn *out);
/* The next one, which there is, has come. */
void rf_run_agenda_take(struct rf_run_agenda *agenda);
/* Turns that have come or are left. */
size_t rf_run_agenda_count(const struct rf_run_agenda *agenda);

/* Leaves out the other repeats of a scenario; false: none was left. */
bool rf_run_agenda_drop(struct rf_run_agenda *agenda, size_t scenario);

#endif
