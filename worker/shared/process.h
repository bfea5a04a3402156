/* What an agent does to its own process and to those it starts. */
#ifndef RF_WORKER_SHARED_PROCESS_H
#define RF_WORKER_SHARED_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "transport/control/schema.h"

/* No core dumps and no reading of this process's memory by others of the same
 * user (it holds a key), no descriptors beyond the standard ones, no death by
 * SIGPIPE, and orphans of its children become its own. SIGINT is ignored unless
 * a person started it: it comes from the coordinator's terminal. */
void rf_process_harden_agent(bool by_hand);

/* What ps and top show: "refit-rank 3" in place of the "exe" that ranks are
 * started by; "rank N" where the number is longer than the room for it. */
void rf_process_name_rank(uint32_t rank);

/* When this process started, in clock ticks since boot (field 22 of
 * /proc/PID/stat): with the id it names a process for good. -1: unknown. */
int64_t rf_process_start_ticks(void);

/* Dies with its parent; false when the parent is gone already. */
bool rf_process_bind_to_parent(pid_t parent);

/* The environment of ranks: variables of this process that are on the list of
 * those that matter, then BOOT's (`extra` or NULL), but for those that are
 * null. NCCL_COMM_ID, which would replace a secret by a constant, never passes.
 * Ends with NULL; freed with rf_process_environment_free(). */
char **rf_process_environment(const struct rf_text_pairs *extra);
/* Adds a variable to such an environment; false: it has one of that name. */
bool rf_process_environment_add(char ***environment, const char *name,
                                const char *value);
void rf_process_environment_free(char **environment);

struct rf_spawn {
    const char *program;
    const char *const *argv;
    char *const *environment;
    int control_fd; /* becomes descriptor 3 */
    int output_fd;  /* becomes standard output and error */
};

/* Starts a process as leader of its own session, with standard input from
 * /dev/null and no other descriptor than those named. */
enum rf_status rf_process_spawn(const struct rf_spawn *how, pid_t *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Sends SIGKILL to every child of this process that is not in `keep`: what is
 * left of ranks whose helpers left their process group. */
void rf_process_kill_strays(const pid_t *keep, size_t n_keep);

#endif
