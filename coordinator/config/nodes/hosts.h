/*
 * Lists of hosts as resource managers and MPI programs write them: ranges such
 * as "gpu[01-32],b7:4", and host files.
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
    char *user;     /* NULL: not said */
    uint32_t slots; /* 0: not said */
};

struct rf_hosts {
    struct rf_host *list;
    size_t n, cap;
    json_t
        *places; /* of the names in lower case, in the list; NULL: none yet */
};

/*
 * Adds the hosts of a list: words between commas, each with at most one
 * "user@" before and one ":slots" behind it, for all hosts of the word.
 * Brackets hold numbers and ranges of them, "[01-03,7]", padded to the width of
 * the first number; several brackets in a word multiply. Brackets around an
 * IPv6 address keep its colons from those of slots, "[::1]:4". A host that is
 * listed twice is an error. What was added before an error stays.
 */
enum rf_status rf_hosts_parse(const char *text, struct rf_hosts *out,
                              struct rf_err *err) RF_MUST_CHECK;

/*
 * Adds the hosts of a host file, one word of such a list per line, with
 * "slots=N" (Open MPI, DeepSpeed) or ":N" (MPICH) or nothing behind it, and
 * comments after "#". Slots of a host on several lines add up; a line without a
 * number is then one slot. A byte order mark is passed over. `name` is what
 * errors call the file.
 */
enum rf_status rf_hosts_parse_file(const char *text, size_t size,
                                   const char *name, struct rf_hosts *out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The same from a file, which may be a pipe. */
enum rf_status rf_hosts_load(const char *path, struct rf_hosts *out,
                             struct rf_err *err) RF_MUST_CHECK;

void rf_hosts_free(struct rf_hosts *hosts);

/*
 * Puts the hosts in place of "nodes" of a cluster file. A host that is there
 * already keeps what the file says of it. Another one takes over the slots, the
 * port, the user and the key of the node at its place in the list, or of the
 * last. Slots of the list win; a file without nodes has one per host. Figures
 * of hosts that are gone leave "links".
 */
void rf_hosts_place(const struct rf_hosts *hosts, json_t *document);

/* Gives a node the name, and the user if there is one, of another host and
 * removes what only the old machine has. */
void rf_hosts_rename(json_t *node, const struct rf_host *host);

#endif
