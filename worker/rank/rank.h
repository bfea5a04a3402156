/*
 * A rank process: `refit-worker --rank`, started by the agent with a socket as
 * descriptor 3. Two threads: the main one talks to the agent and watches
 * leases, the data thread does the work (attempt.h).
 */
#ifndef RF_WORKER_RANK_RANK_H
#define RF_WORKER_RANK_RANK_H

#include <stdint.h>
#include <sys/types.h>

#define RF_RANK_CONTROL_FD 3

struct rf_rank_options {
    uint32_t rank;
    pid_t parent;
    uint32_t lease_ms, lease_period_ms, abort_ms;
};

/* Runs until the attempt is closed or aborted; returns the exit status. */
int rf_rank_run(const struct rf_rank_options *options);

#endif
