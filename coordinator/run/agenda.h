/*
 * The order in which a run begins scenarios. With repeats, every scenario runs
 * once in the order of cluster.json, then all again, so that machine drift
 * affects all of them. A scenario with a repeat that was not ok gets no further
 * repeats.
 */
#ifndef RF_COORDINATOR_RUN_AGENDA_H
#define RF_COORDINATOR_RUN_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_run_agenda;

struct rf_run_turn {
    size_t scenario; /* index into config->scenarios */
    uint32_t repeat; /* from 0 */
};

/* `skip[repeat * n_scenarios + scenario]` (borrowed, may be NULL) marks turns
 * to leave out. */
struct rf_run_agenda *
rf_run_agenda_create(size_t n_scenarios, uint32_t n_repeats, const bool *skip);
void rf_run_agenda_destroy(struct rf_run_agenda *agenda); /* or NULL */

uint32_t rf_run_agenda_repeats(const struct rf_run_agenda *agenda);

/* The turn after the next `after` ones, which stays untaken; false: none. */
bool rf_run_agenda_left(const struct rf_run_agenda *agenda, size_t after,
                        struct rf_run_turn *out);
/* Takes the next turn; there must be one. */
void rf_run_agenda_take(struct rf_run_agenda *agenda);
/* Turns taken plus turns left. */
size_t rf_run_agenda_count(const struct rf_run_agenda *agenda);

/* Drops the remaining repeats of a scenario; false: none was left. */
bool rf_run_agenda_drop(struct rf_run_agenda *agenda, size_t scenario);

#endif
