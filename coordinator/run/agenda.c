/* The order of scenarios and repeats. See agenda.h. */
#include "coordinator/run/agenda.h"

#include <stdlib.h>

#include "common/mem.h"

struct rf_run_agenda {
    size_t n_scenarios;
    uint32_t n_repeats;
    const bool *skip;
    bool *dropped;      /* by scenario */
    size_t next, taken; /* next: the first to consider */
};

struct rf_run_agenda *rf_run_agenda_create(size_t n_scenarios,
                                           uint32_t n_repeats, const bool *skip)
{
    struct rf_run_agenda *agenda = rf_xcalloc(1, sizeof(*agenda));
    *agenda = (struct rf_run_agenda){
        .n_scenarios = n_scenarios,
        .n_repeats = n_repeats,
        .skip = skip,
        .dropped = rf_xcalloc(n_scenarios + 1, sizeof(*agenda->dropped))};
    return agenda;
}

void rf_run_agenda_destroy(struct rf_run_agenda *agenda)
{
    if (agenda != NULL) {
        free(agenda->dropped);
        free(agenda);
    }
}

uint32_t rf_run_agenda_repeats(const struct rf_run_agenda *agenda)
{
    return agenda->n_repeats;
}

/* The first turn at or after `at` that is not left out; the end: none. */
static size_t find(const struct rf_run_agenda *agenda, size_t at)
{
    const size_t end = agenda->n_scenarios * agenda->n_repeats;
    while (at < end && ((agenda->skip != NULL && agenda->skip[at]) ||
                        agenda->dropped[at % agenda->n_scenarios])) {
        at++;
    }
    return at;
}

bool rf_run_agenda_left(const struct rf_run_agenda *agenda, size_t after,
                        struct rf_run_turn *out)
{
    const size_t end = agenda->n_scenarios * agenda->n_repeats;
    size_t at = find(agenda, agenda->next);
    for (size_t i = 0; i < after && at < end; i++) {
        at = find(agenda, at + 1);
    }
    if (at == end) {
        return false;
    }
    *out = (struct rf_run_turn){at % agenda->n_scenarios,
                                (uint32_t)(at / agenda->n_scenarios)};
    return true;
}

void rf_run_agenda_take(struct rf_run_agenda *agenda)
{
    agenda->next = find(agenda, agenda->next) + 1;
    agenda->taken++;
}

size_t rf_run_agenda_count(const struct rf_run_agenda *agenda)
{
    const size_t end = agenda->n_scenarios * agenda->n_repeats;
    size_t count = agenda->taken;
    for (size_t at = find(agenda, agenda->next); at < end;
         at = find(agenda, at + 1)) {
        count++;
    }
    return count;
}

bool rf_run_agenda_drop(struct rf_run_agenda *agenda, size_t scenario)
{
    const size_t before = rf_run_agenda_count(agenda);
    agenda->dropped[scenario] = true;
    return rf_run_agenda_count(agenda) < before;
}
