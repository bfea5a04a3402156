/*
 * The agent: one process per node, between the coordinator and the ranks of the
 * node. Starts them, passes messages on, gathers their answers, forwards their
 * output, and ends them when the coordinator is gone.
 */
#ifndef RF_WORKER_AGENT_AGENT_H
#define RF_WORKER_AGENT_AGENT_H

#include "worker/agent/boot.h"

#define RF_AGENT_CANDIDATES_MAX 64

struct rf_agent_options {
    /* Without a stream (--connect, --slurm): where to go and who we are. */
    bool connect;
    bool attended; /* a launcher keeps standard input open; its end is ours */
    struct rf_msg_candidate candidates[RF_AGENT_CANDIDATES_MAX];
    size_t n_candidates;
    const char *identity;
    uint8_t psk[RF_PSK_BYTES]; /* wiped by rf_agent_run() */
};

/* Runs until the run is over. The exit status of the process: 0 after SHUTDOWN,
 * 1 when the coordinator was lost or never reached. */
int rf_agent_run(struct rf_agent_options *options);

#endif
