/* Shared by the launchers. Private to launch*.c. */
#ifndef RF_COORDINATOR_LAUNCH_LAUNCH_INTERNAL_H
#define RF_COORDINATOR_LAUNCH_LAUNCH_INTERNAL_H

#include <sys/queue.h>

#include "coordinator/launch/launch.h"

/* The first member of every launcher's own struct. */
struct rf_launch {
    struct rf_launch_ops_cb callbacks;
    void *data;
};

/* The worker that `local` and `slurm` start: the one beside refit-coord; or
 * "worker", if that is a path, there is a wrap, or local_worker is NULL. */
const char *rf_launch_program(const struct rf_launch_order *order);

/* This process's environment without the variables that begin with one of these
 * words (ends with NULL), but with `added`; NULL: none. The caller frees the
 * list, not its strings. */
char **rf_launch_environment(const char *const *without, char *added);

/* The grace in ms for an order's grace_ms. */
static inline uint32_t rf_launch_grace_ms(uint32_t ordered)
{
    return ordered > 0 ? ordered : RF_LAUNCH_GRACE_MS;
}

/*
 * launch.wrap: a command that starts the worker, such as `docker exec -i NAME`
 * for a container. The worker and its option follow as further words; the
 * command must pass standard input and output through.
 */

/* Most words that rf_wrap_words() returns, with the NULL. */
#define RF_WRAP_WORDS_MAX (RF_LAUNCH_WRAP_MAX + 3)

/* The words of the wrap, with "{host}" replaced by the node's name, then the
 * worker and its option; NULL-terminated. Free with rf_wrap_free(), which
 * accepts NULL. */
char **rf_wrap_words(const struct rf_launch_config *how, const char *node,
                     const char *worker, const char *option);
void rf_wrap_free(char **words);

/* Only the words of the wrap, for a POSIX shell, each followed by a space; ""
 * without a wrap. malloc'ed. */
char *rf_wrap_prefix(const struct rf_launch_config *how, const char *node);

/* A launch's place at the gate. Its turn calls `start`, perhaps from inside
 * rf_gate_enter(). */
struct rf_gate_place {
    void (*start)(struct rf_gate_place *place);
    TAILQ_ENTRY(rf_gate_place) next;
    enum { RF_GATE_OUT, RF_GATE_WAITING, RF_GATE_IN } state;
};

/* `gate` NULL: every turn comes at once. */
void rf_gate_enter(struct rf_launch_gate *gate, struct rf_gate_place *place);
/* Gives up the turn, or the wait for it. Safe to repeat. */
void rf_gate_leave(struct rf_launch_gate *gate, struct rf_gate_place *place);

/* Splits a byte stream into lines at "\r\n" and "\n"; splits long ones. Control
 * characters become '?', so that no node can control the terminal. */
#define RF_LINE_MAX 2048
struct rf_lines {
    char line[RF_LINE_MAX];
    size_t used;
    void (*take)(const char *line, void *data);
    void *data;
};

void rf_lines_feed(struct rf_lines *lines, const char *bytes, size_t size);
/* Passes on an unfinished last line. */
void rf_lines_end(struct rf_lines *lines);

#endif
