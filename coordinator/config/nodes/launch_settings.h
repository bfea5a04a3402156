/*
 * Where and how to start agents: "launch" and an entry of "nodes" in
 * cluster.json. Settings only; run-time state belongs to the launchers
 * (coordinator/launch/launch.h).
 */
#ifndef RF_COORDINATOR_CONFIG_NODES_LAUNCH_SETTINGS_H
#define RF_COORDINATOR_CONFIG_NODES_LAUNCH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RF_CONFIG_MAX_NODES 4096
#define RF_CONFIG_MAX_SLOTS 1024 /* of a node */

/* The settings to reach one node. */
struct rf_node_config {
    const char *name;     /* "host" of cluster.json, unique */
    const char *hostname; /* to connect to; NULL: name */
    uint32_t port;        /* 0: from the ssh config, else 22 */
    const char *user;     /* NULL: from the ssh config, else the caller's */
    const char *identity; /* private key file, NULL: ssh config and defaults */
    const char *host_key_sha256; /* base64 as in ssh-keygen -l, or NULL */
    const char *address;         /* data-plane address, NULL: detected */
    uint32_t slots;
};

#define RF_LAUNCH_WRAP_MAX 32 /* words */
#define RF_BIND_NONE "none"

struct rf_launch_config {
    const char *method; /* "ssh", "local", "manual", "slurm" */
    const char *worker; /* path or name on the node */
    const char *wrap[RF_LAUNCH_WRAP_MAX]; /* words of a command that starts
                                             the worker, may contain "{host}" */
    size_t n_wrap;           /* 0: the worker is started directly */
    const char *known_hosts; /* file, NULL: ssh's own */
    const char *ssh_config;  /* file, NULL: ssh's own */
    bool use_ssh_config;
    bool accept_new;    /* add unknown host keys instead of refusing */
    const char *bind;   /* RF_BIND_NONE, "numa", "core": where ranks run */
    bool deploy;        /* copy the worker over SFTP first */
    uint32_t parallel;  /* starts in progress at once */
    uint32_t timeout_s; /* from the start of a node's turn until its stream
                           is open; deployment has its own limit */
};

#endif
