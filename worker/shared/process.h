/* The agent's own process and the processes it starts. */
#ifndef RF_WORKER_SHARED_PROCESS_H
#define RF_WORKER_SHARED_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "transport/control/schema.h"

/* Forbids core dumps and reads of this process's memory by others of the same
 * user (it holds a key), makes all but the standard descriptors close-on-exec,
 * ignores SIGPIPE, and adopts its children's orphans. Ignores SIGINT unless
 * started `by_hand`: it comes from the coordinator's terminal. */
void rf_process_harden_agent(bool by_hand);

/* Sets the name in ps and top: "refit-rank 3" instead of "exe", by which ranks
 * are started; "rank N" if that is too long. */
void rf_process_name_rank(uint32_t rank);

/* Start time of this process in clock ticks since boot (field 22 of
 * /proc/PID/stat): with the pid it identifies a process uniquely. -1:
 * unknown. */
int64_t rf_process_start_ticks(void);

/* Makes this process die with its parent. False if it is gone already. */
bool rf_process_bind_to_parent(pid_t parent);

/* The environment of ranks: the relevant variables of this process, overridden
 * by BOOT's (`extra` or NULL) except null ones. NCCL_COMM_ID is never passed,
 * as it would replace a secret by a constant. Ends with NULL; freed with
 * rf_process_environment_free(). */
char **rf_process_environment(const struct rf_text_pairs *extra);
/* Adds a variable to such an environment. False if the name is already set. */
bool rf_process_environment_add(char ***environment, const char *name,
                                const char *value);
void rf_process_environment_free(char **environment);

struct rf_spawn {
    const char *program;
    const char *const *argv;
    char *const *environment;
    int control_fd;        /* becomes descriptor 3 */
    int output_fd;         /* becomes standard output and error */
    const cpu_set_t *cpus; /* where it runs; NULL: where this process may */
};

/* Starts a process as leader of its own session, with standard input from
 * /dev/null and no descriptors but those named. For the time of the start the
 * calling thread runs on `cpus`, which the process inherits. */
enum rf_status rf_process_spawn(const struct rf_spawn *how, pid_t *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Sends SIGKILL to every child of this process that is not in `keep`: orphans
 * that left the process group of their rank. */
void rf_process_kill_strays(const pid_t *keep, size_t n_keep);

#endif
