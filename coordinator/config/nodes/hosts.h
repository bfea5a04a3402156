/*
 * Lists of hosts in the forms of resource managers and MPI programs: ranges
 * such as "gpu[01-32],b7:4", and host files.
 */
#ifndef RF_COORDINATOR_CONFIG_NODES_HOSTS_H
#define RF_COORDINATOR_CONFIG_NODES_HOSTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RF_HOSTS_MAX_FILE_BYTES ((size_t)1 << 20)

struct rf_host {
    char *name;     /* fit for a node's "host" */
    char *user;     /* NULL: not given */
    uint32_t slots; /* 0: not given */
};

struct rf_hosts {
    struct rf_host *list;
    size_t n, cap;
};

/*
 * Adds the hosts of a list: words between commas, each with at most one "user@"
 * before and one ":slots" after it, for all hosts of the word. Brackets hold
 * numbers and ranges of them, "[01-03,7]", padded to the width of the first
 * number; several brackets in a word multiply. Brackets around an IPv6 address
 * separate its colons from that of slots, "[::1]:4". A host listed twice is an
 * error. Hosts added before an error stay.
 */
enum rf_status rf_hosts_parse(const char *text, struct rf_hosts *out,
                              struct rf_err *err) RF_MUST_CHECK;

/*
 * Adds the hosts of a host file: one word of such a list per line, followed by
 * "slots=N" (Open MPI, DeepSpeed), ":N" (MPICH) or nothing, with comments after
 * "#". Slots of a host on several lines add up; a line without a number then
 * counts as one slot. A byte order mark is skipped. `name` names the file in
 * errors.
 */
enum rf_status rf_hosts_parse_file(const char *text, size_t size,
                                   const char *name, struct rf_hosts *out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The same from a file, which may be a pipe. */
enum rf_status rf_hosts_load(const char *path, struct rf_hosts *out,
                             struct rf_err *err) RF_MUST_CHECK;

void rf_hosts_free(struct rf_hosts *hosts);

/*
 * Replaces "nodes" of a cluster file with the hosts. A host already in the file
 * keeps its settings. A new one takes the slots, port, user and key of the node
 * at its position in the list, or of the last node. Slots of the list have
 * priority; a file without nodes gets one slot per host. In scenarios, added
 * hosts take the places of dropped ones, in order. Removes the figures of
 * dropped hosts from "links".
 */
void rf_hosts_place(const struct rf_hosts *hosts, json_t *document);

/* In the sides of a scenario, replaces each name in `old` by the name at the
 * same index of `now`, if there is one. */
void rf_hosts_rename_sides(json_t *scenario, const json_t *old,
                           const json_t *now);

/* Gives a node the name of another host, and its user if there is one, and
 * removes settings specific to the old machine. */
void rf_hosts_rename(json_t *node, const struct rf_host *host);

#endif
