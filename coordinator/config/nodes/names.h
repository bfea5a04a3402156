/*
 * Rules for names used in commands and connections. They apply to cluster.json
 * and to names that launchers get elsewhere (from an ssh config or a node's
 * answer).
 */
#ifndef RF_COORDINATOR_CONFIG_NODES_NAMES_H
#define RF_COORDINATOR_CONFIG_NODES_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A name, an IPv4 or an IPv6 address. */
bool rf_names_valid_host(const char *host);
/* Letters, digits and "._-", no leading dash or dot. */
bool rf_names_valid_user(const char *user);
/* A name or path of letters, digits and "._/+-", with an optional leading "~/",
 * no "..", no leading dash. */
bool rf_names_valid_worker(const char *path);
/* Name of a run or a scenario, which becomes a file name: letters, digits and
 * "._-+=", as members of a matrix have, no leading dash or dot, at most
 * `longest` bytes. */
bool rf_names_valid_file(const char *name, size_t longest);

#endif
