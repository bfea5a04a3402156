/*
 * A simulated cluster: implements struct rf_run_ops on a virtual clock, with
 * agents that answer as real ones do, and faults on request. Everything is
 * deterministic; minutes of deadlines pass in no time.
 */
#ifndef RF_TESTS_FAKE_CLUSTER_H
#define RF_TESTS_FAKE_CLUSTER_H

#include <jansson.h>

#include "coordinator/run/run.h"
#include "tests/lib/auto.h"

#define FAKE_ATTEMPTS_MAX 16
#define FAKE_FAULTS_MAX 4
#define FAKE_MS INT64_C(1000000)
#define FAKE_S INT64_C(1000000000)

#define FAKE_CHECKED_BYTES UINT64_C(1000) /* of each rank except the first */

enum fake_fault_kind {
    FAKE_NO_FAULT,
    /* while launching */
    FAKE_LAUNCH_FAILS,
    FAKE_NEVER_JOINS,
    FAKE_OLD_PROTOCOL,
    FAKE_NO_METHOD, /* HELLO says why not */
    FAKE_NO_MEMORY, /* HELLO has 1 MB available */
    /* at a step */
    FAKE_RANK_KILLED,  /* RANK_EXIT with signal 9 */
    FAKE_PEER_NOTICES, /* another node's rank says "peer lost" first */
    FAKE_RANK_ERROR,   /* DONE with ok false */
    FAKE_LOST_PEER,    /* its rank says "peer lost", soon */
    FAKE_NODE_LOST,
    FAKE_SILENT, /* no DONE, ever */
    FAKE_TWICE,  /* DONE twice, and one of the previous step */
    FAKE_WRONG_DIGEST,
    FAKE_MISMATCH,
    FAKE_WRONG_RANK, /* answers for another node's rank */
    FAKE_RANK_MISSING,
    FAKE_PART_MISSING, /* the answer lacks the step's part */
    FAKE_BAD_NUMBER,
    FAKE_BAD_CLOCK,    /* starts at INT64_MIN, ends at INT64_MAX */
    FAKE_LESS_CHECKED, /* two bytes fewer */
    FAKE_NOT_ASKED,    /* DONE of a step in the future */
    FAKE_ERROR_MESSAGE,
    /* at the step "inspect", where FAKE_NODE_LOST and FAKE_SILENT work, too */
    FAKE_NO_FOLDER,
    FAKE_OTHER_SHARD,
    FAKE_NO_SHARD,
    FAKE_BAD_HEADERS,
};

struct fake_fault {
    enum fake_fault_kind kind;
    uint32_t node;
    const char *step; /* "run"; NULL: not at a step */
    int iteration;    /* of fill, run, verify; -1: any */
    uint32_t attempt; /* 0: any */
    bool no_aborted;  /* the node never answers ABORT */
    bool applied; /* the run reached it; fake_cluster_destroy() asserts it */
};

struct fake_attempt {
    char name[64];
    uint32_t repeat, n_repeats;
    enum rf_outcome outcome;
    size_t n_iterations;
    uint32_t verified;
    uint64_t bytes_total, checked_bytes, mismatched_bytes;
    struct rf_fault *faults; /* owned copies */
    size_t n_faults;
    bool probed_before, probed_after, closed;
    double copy_gbytes_per_s, pair_gbytes_per_s;
    int64_t total_ns, phase_ns[RF_PHASES];
};

struct fake_cluster {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_run *run;
    struct rf_preflight_inspect *inspect; /* NULL: no checkpoint is missing */
    unsigned inspects, wholes; /* INSPECTs that nodes got; those with `whole` */
    int64_t now_ns, timer_ns;
    struct fake_event *events;
    struct fake_fault faults[FAKE_FAULTS_MAX];
    struct fake_attempt attempts[FAKE_ATTEMPTS_MAX];
    size_t n_attempts;
    struct rf_run_view view; /* the last one shown */
    bool started, done, joined_called;
    int exit_code;
    unsigned source_checks; /* steps that check sources, over all nodes */
    size_t gone;            /* lost agents whose files SHUTDOWN named */
    unsigned starts, aborts, shutdowns, drops, stops, forced_stops, exchanged;
    bool deaf;       /* agents do not end when stopped */
    bool slow_store; /* the test calls rf_run_stored() itself */
    int64_t plan_ns; /* time to plan a scenario */
    char plan_digest[33], schedule_digest[33];
    const struct rf_scenario *scenario; /* of the attempt in progress */
    json_t *last_exchanged;
    uint32_t attempt;
    json_t *seen_start;
    unsigned links, foreign_links; /* sent to a node with an end of them; to
                                      other nodes */
    json_t *seen_limits; /* the last "timeout_s" of each step, by its name */
};

/* `config` is JSON text of a cluster.json. Fails the test when it is bad. */
struct fake_cluster *fake_cluster_create(const char *config, const bool *skip,
                                         uint32_t timeout_s);
/* The same with any options. */
struct fake_cluster *fake_cluster_with(const char *config,
                                       struct rf_run_options options);
void fake_cluster_destroy(struct fake_cluster *fake);
AUTO_POINTER(fake_cluster, fake_cluster_destroy)
void fake_cluster_fault(struct fake_cluster *fake, struct fake_fault fault);

/* Starts the run, once. */
void fake_cluster_start(struct fake_cluster *fake);
/* Start the run unless it runs, and let virtual time pass until it is done or,
 * for until(), in `state`, for at most `limit_ns`. Return whether it got
 * there. */
bool fake_cluster_run(struct fake_cluster *fake, int64_t limit_ns);
bool fake_cluster_until(struct fake_cluster *fake, const char *state,
                        int64_t limit_ns);
/* Delivers a message from a node's agent at once. Takes the payload. */
void fake_cluster_say(struct fake_cluster *fake, uint32_t node,
                      enum rf_msg_type type, json_t *payload);

#endif
