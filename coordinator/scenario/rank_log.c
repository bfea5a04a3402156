/* See rank_log.h. */
#include "coordinator/scenario/rank_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static void free_line(struct rf_rank_line *line)
{
    free(line->phase);
    free(line->text);
}

void rf_rank_log_add(struct rf_rank_log *log, const char *phase,
                     const char *line)
{
    const struct rf_rank_line new_line = {rf_xstrdup(phase), rf_xstrdup(line)};
    struct rf_rank_line *slot;
    if (log->n_first < RF_RANK_LOG_LINES) {
        RF_PUSH(log->first, log->n_first, log->cap_first, new_line);
        return;
    }
    if (log->last == NULL) {
        log->last = rf_xcalloc(RF_RANK_LOG_LINES, sizeof(*log->last));
    }
    slot = &log->last[log->n_last++ % RF_RANK_LOG_LINES];
    free_line(slot);
    *slot = new_line;
}

/* `phase` is that of the previous line; set to that of this one. */
static void print_line(const struct rf_rank_line *line, const char **phase,
                       FILE *to)
{
    if (*phase == NULL || strcmp(*phase, line->phase) != 0) {
        fprintf(to, "%s:\n", line->phase);
    }
    *phase = line->phase;
    fprintf(to, "  %s\n", line->text);
}

void rf_rank_log_print(const struct rf_rank_log *log, FILE *to)
{
    const uint64_t kept = RF_MIN(log->n_last, (uint64_t)RF_RANK_LOG_LINES);
    const char *phase = NULL;
    for (size_t i = 0; i < log->n_first; i++) {
        print_line(&log->first[i], &phase, to);
    }
    if (log->n_last > kept) {
        fprintf(to, "(%" PRIu64 " lines left out)\n", log->n_last - kept);
    }
    for (uint64_t i = log->n_last - kept; i < log->n_last; i++) {
        print_line(&log->last[i % RF_RANK_LOG_LINES], &phase, to);
    }
}

void rf_rank_log_free(struct rf_rank_log *log)
{
    for (size_t i = 0; i < log->n_first; i++) {
        free_line(&log->first[i]);
    }
    for (size_t i = 0; log->last != NULL && i < RF_RANK_LOG_LINES; i++) {
        free_line(&log->last[i]);
    }
    free(log->first);
    free(log->last);
    *log = (struct rf_rank_log){0};
}
