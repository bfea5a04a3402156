/*
 * The agent: one process per node, between the coordinator and the node's
 * ranks. Starts the ranks, relays messages, gathers answers, forwards output,
 * and kills the ranks when the coordinator is gone.
 */
#ifndef RF_WORKER_AGENT_AGENT_H
#define RF_WORKER_AGENT_AGENT_H

#include "worker/agent/boot.h"

#define RF_AGENT_CANDIDATES_MAX 64

struct rf_agent_options {
    /* For --connect and --slurm: the coordinator's addresses, our identity. */
    bool connect;
    bool attended; /* a launcher holds standard input open; exit when it ends */
    struct rf_msg_candidate candidates[RF_AGENT_CANDIDATES_MAX];
    size_t n_candidates;
    const char *identity;
    uint8_t psk[RF_PSK_BYTES]; /* wiped by rf_agent_run() */
};

/* Blocks until the run is over. Returns the process's exit status: 0 after
 * SHUTDOWN, 1 if the coordinator was lost or never reached, 2 if the standard
 * streams are unusable. */
int rf_agent_run(struct rf_agent_options *options);

#endif
