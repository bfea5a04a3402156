#include "coordinator/run/faults.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"

#define LOG_LINES 24       /* kept per node */
#define LOG_LINES_SHOWN 8  /* shown with a fault */
#define LOG_LINE_BYTES 301 /* kept per line, with its NUL */

struct log_line {
    uint32_t rank;
    char *text;
};

struct log {
    struct log_line lines[LOG_LINES]; /* ring; oldest at `at` */
    unsigned at;
};

struct rf_run_faults {
    const struct rf_config *config;
    struct rf_attempt *attempt;
    struct log *logs;      /* per node */
    bool settling;         /* the cause is not yet known */
    bool aborting;         /* the cause is known */
    uint32_t n_unanswered; /* ranks that nodes named in ABORTED */
};

struct rf_run_faults *rf_run_faults_create(const struct rf_config *config)
{
    struct rf_run_faults *faults = rf_xcalloc(1, sizeof(*faults));
    faults->config = config;
    faults->logs = rf_xcalloc(config->n_nodes, sizeof(*faults->logs));
    return faults;
}

void rf_run_faults_destroy(struct rf_run_faults *faults)
{
    if (faults == NULL) {
        return;
    }
    for (uint32_t i = 0; i < faults->config->n_nodes; i++) {
        for (unsigned l = 0; l < LOG_LINES; l++) {
            free(faults->logs[i].lines[l].text);
        }
    }
    free(faults->logs);
    free(faults);
}

void rf_run_faults_begin(struct rf_run_faults *faults,
                         struct rf_attempt *attempt)
{
    faults->attempt = attempt;
    faults->settling = faults->aborting = false;
    faults->n_unanswered = 0;
}

/* --- Last lines ----------------------------------------------------------- */

void rf_run_faults_log(struct rf_run_faults *faults, uint32_t node,
                       uint32_t rank, const char *line)
{
    struct log *log = &faults->logs[node];
    struct log_line *slot = &log->lines[log->at];
    char text[LOG_LINE_BYTES];
    rf_text_fit(text, sizeof(text), snprintf(text, sizeof(text), "%s", line));
    free(slot->text);
    slot->text = rf_xstrdup(text);
    slot->rank = rank;
    log->at = (log->at + 1) % LOG_LINES;
}

/* The last lines of a rank, or of the whole node with RF_NONE. */
static struct rf_texts last_lines(const struct rf_run_faults *faults,
                                  uint32_t node, uint32_t rank)
{
    const struct log *log = &faults->logs[node];
    struct rf_texts out = {rf_xcalloc(LOG_LINES_SHOWN, sizeof(char *)), 0};
    for (unsigned i = 0; i < LOG_LINES; i++) {
        const struct log_line *line = &log->lines[(log->at + i) % LOG_LINES];
        if (line->text == NULL || (rank != RF_NONE && line->rank != rank)) {
            continue;
        }
        if (out.n == LOG_LINES_SHOWN) {
            free(out.list[0]);
            memmove(out.list, out.list + 1, --out.n * sizeof(*out.list));
        }
        out.list[out.n++] = rf_xstrdup(line->text);
    }
    return out;
}

void rf_run_faults_add_lines(const struct rf_run_faults *faults,
                             struct rf_fault *fault)
{
    if (fault->lines.n == 0) {
        free(fault->lines.list);
        fault->lines = last_lines(faults, fault->node, fault->rank);
    }
}

/* --- Cause and consequences ----------------------------------------------- */

static void say(const struct rf_run_faults *faults,
                const struct rf_fault *fault)
{
    char where[128] = "";
    if (fault->node != RF_NONE && fault->rank != RF_NONE) {
        snprintf(where, sizeof(where),
                 "%.80s: rank %u: ", faults->config->node_names[fault->node],
                 fault->rank);
    } else if (fault->node != RF_NONE) {
        snprintf(where, sizeof(where),
                 "%.80s: ", faults->config->node_names[fault->node]);
    }
    rf_error("scenario %s failed (%s): %s%s",
             faults->attempt->scenario->spec->name, fault->phase, where,
             fault->text);
    for (size_t i = 0; i < fault->lines.n; i++) {
        rf_error("  | %s", fault->lines.list[i]);
    }
}

/* Moves the fault added last to the front: the others only noticed it. */
static void promote_last(struct rf_attempt *attempt)
{
    struct rf_fault *faults = attempt->faults;
    const size_t last = attempt->n_faults - 1;
    struct rf_fault cause = faults[last];
    memmove(faults + 1, faults, last * sizeof(*faults));
    faults[0] = cause;
}

enum rf_verdict rf_run_faults_cause(struct rf_run_faults *faults,
                                    struct rf_fault *fault)
{
    if (!faults->settling && !faults->aborting) {
        say(faults, fault);
    }
    rf_attempt_add_fault(faults->attempt, fault);
    if (faults->aborting) {
        return RF_VERDICT_GO_ON;
    }
    if (faults->settling) {
        promote_last(faults->attempt);
    }
    return RF_VERDICT_ABORT;
}

/* Whether the rank only followed another and does not know the cause. */
static bool followed(const struct rf_fault *fault)
{
    return fault->status == RF_ERR_ABORTED;
}

enum rf_verdict rf_run_faults_notice(struct rf_run_faults *faults,
                                     struct rf_fault *fault)
{
    const bool knows = !followed(fault);
    rf_attempt_add_fault(faults->attempt, fault);
    if (faults->settling && knows && followed(&faults->attempt->faults[0])) {
        promote_last(faults->attempt);
    }
    if (faults->settling || faults->aborting) {
        return RF_VERDICT_GO_ON;
    }
    faults->settling = true;
    return RF_VERDICT_SETTLE;
}

void rf_run_faults_abort(struct rf_run_faults *faults)
{
    /* The cause and the first rank to notice; until now it was unknown which is
     * which. */
    const size_t n = RF_MIN(faults->attempt->n_faults, (size_t)2);
    for (size_t i = 0; faults->settling && i < n; i++) {
        if (i == 0 || !followed(&faults->attempt->faults[i])) {
            say(faults, &faults->attempt->faults[i]);
        }
    }
    faults->settling = false;
    faults->aborting = true;
}

/* --- Phases --------------------------------------------------------------- */

/* Same words and counting as the progress display. */
char *rf_run_faults_phase(const char *phase, uint32_t iteration,
                          const struct rf_spec *spec)
{
    if (iteration < spec->warmup) {
        return rf_xasprintf("%.40s warm-up %u of %u", phase, iteration + 1,
                            spec->warmup);
    }
    return rf_xasprintf("%.40s iteration %u of %u", phase,
                        RF_MIN(iteration - spec->warmup + 1, spec->iterations),
                        spec->iterations);
}

/* --- Ranks that ended or hung --------------------------------------------- */

/* How a rank ended, why its agent ended it, or why the agent could not start
 * its ranks. */
static struct rf_fault describe_exit(uint32_t node,
                                     const struct rf_msg_rank_exit *exit)
{
    char pid[16] = "";
    if (exit->rank == RF_ABSENT_U32) {
        return rf_fault_make(
            node, RF_NONE, RF_ERR_LAUNCH, "cannot start its ranks: %s",
            exit->cause != NULL ? exit->cause : "no reason given");
    }
    if (exit->pid != RF_ABSENT_U32) { /* absent: it could not be started */
        snprintf(pid, sizeof(pid), " %u", exit->pid);
    }
    if (exit->cause != NULL) {
        return rf_fault_make(node, exit->rank, RF_ERR_PEER,
                             "its process%s %.120s", pid, exit->cause);
    }
    if (exit->signal != RF_ABSENT_U32) {
        return rf_fault_make(
            node, exit->rank, RF_ERR_PEER,
            "its process%s was killed by signal %u (%s)%s", pid, exit->signal,
            strsignal((int)exit->signal),
            exit->signal == SIGKILL
                ? "; probably the kernel's OOM killer (see dmesg there)"
                : "");
    }
    return rf_fault_make(node, exit->rank, RF_ERR_PEER,
                         "its process%s ended early with status %u", pid,
                         exit->status != RF_ABSENT_U32 ? exit->status : 0);
}

struct rf_fault rf_run_faults_of_exit(uint32_t node,
                                      const struct rf_msg_rank_exit *exit)
{
    struct rf_fault fault = describe_exit(node, exit);
    const struct rf_texts *lines = &exit->stderr_lines;
    if (exit->phase != NULL) {
        fault.phase = rf_xstrdup(exit->phase);
    }
    fault.lines.list = rf_xcalloc(lines->n + 1, sizeof(char *));
    for (; fault.lines.n < lines->n; fault.lines.n++) {
        fault.lines.list[fault.lines.n] =
            rf_xstrdup(lines->list[fault.lines.n]);
    }
    return fault;
}

/* "0-3, 6" from an ascending, non-empty list. The caller frees it. */
static char *numbers_text(const struct rf_integers *numbers)
{
    char *text = NULL;
    for (size_t i = 0; i < numbers->n; i++) {
        const uint64_t from = numbers->list[i];
        uint64_t to = from;
        while (i + 1 < numbers->n && numbers->list[i + 1] == to + 1) {
            to = numbers->list[++i];
        }
        rf_text_add(&text, ", ", "%" PRIu64, from);
        if (to > from) {
            rf_text_add(&text, "-", "%" PRIu64, to);
        }
    }
    return text;
}

/* Makes the cause name the one hung rank of all nodes; no rank if several hung,
 * and no node if they are on several. */
static void name_alone(struct rf_run_faults *faults, uint32_t node,
                       const struct rf_integers *mine)
{
    struct rf_fault *cause = &faults->attempt->faults[0];
    const bool first = faults->n_unanswered == 0;
    faults->n_unanswered += (uint32_t)mine->n;
    cause->rank = RF_NONE;
    if (faults->n_unanswered == 1) {
        cause->rank = (uint32_t)mine->list[0];
        cause->node = node;
    } else if (!first && cause->node != node) {
        cause->node = RF_NONE;
    }
}

/* Adds one of the hung ranks, with its last lines. */
static void add_unanswered(struct rf_run_faults *faults, uint32_t node,
                           uint32_t rank)
{
    struct rf_fault fault =
        rf_fault_make(node, rank, RF_ERR_TIMEOUT, "no answer by the deadline");
    fault.phase = rf_xstrdup(faults->attempt->faults[0].phase);
    rf_run_faults_add_lines(faults, &fault);
    rf_attempt_add_fault(faults->attempt, &fault);
}

/* Names the hung ranks of a node in the text of the cause. */
static void name_unanswered(struct rf_run_faults *faults, uint32_t node,
                            const struct rf_integers *mine)
{
    struct rf_fault *cause = &faults->attempt->faults[0];
    const char *host = faults->config->node_names[node];
    const char *plural = mine->n > 1 ? "s" : "";
    char *ranks = numbers_text(mine);
    rf_error("no answer from rank%s %s of %s", plural, ranks, host);
    rf_text_add(&cause->text, "; ", "no answer from rank%s %s of %s", plural,
                ranks, host);
    free(ranks);
    name_alone(faults, node, mine);
}

/* Takes the hung ranks of a node: those that had not answered by the
 * deadline. */
static void take_unanswered(struct rf_run_faults *faults, uint32_t node,
                            const struct rf_integers *told)
{
    struct rf_integers mine = {rf_xcalloc(told->n + 1, sizeof(uint64_t)), 0};
    for (size_t i = 0; i < told->n; i++) {
        const uint32_t rank = (uint32_t)told->list[i];
        if (rf_scenario_rank_on(faults->attempt->scenario, rank, node)) {
            add_unanswered(faults, node, rank);
            mine.list[mine.n++] = rank;
        }
    }
    if (mine.n > 0) {
        name_unanswered(faults, node, &mine);
    }
    free(mine.list);
}

static void take_unkillable(struct rf_run_faults *faults, uint32_t node,
                            const struct rf_integers *pids)
{
    char *text = numbers_text(pids);
    struct rf_fault fault =
        rf_fault_make(node, RF_NONE, RF_ERR_TIMEOUT,
                      "processes %s did not end after SIGKILL: stuck in the "
                      "kernel (state D), or the machine is overloaded",
                      text);
    free(text);
    fault.phase = rf_xstrdup("aborting");
    rf_error("%s: %s", faults->config->node_names[node], fault.text);
    rf_attempt_add_fault(faults->attempt, &fault);
}

void rf_run_faults_aborted(struct rf_run_faults *faults, uint32_t node,
                           const struct rf_msg_aborted *aborted)
{
    const struct rf_attempt *attempt = faults->attempt;
    if (attempt->n_faults > 0 && attempt->faults[0].status == RF_ERR_TIMEOUT) {
        take_unanswered(faults, node, &aborted->unanswered);
    }
    if (aborted->unkillable.n > 0) {
        take_unkillable(faults, node, &aborted->unkillable);
    }
}
