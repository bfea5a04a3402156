/*
 * Parses the output of ucp_ep_print_info() for an endpoint; UCX 1.13 has no
 * other interface for it:
 *
 *     #   lane[0]:  4:posix/memory.0 md[3] -> md[3]/posix/sysdev[255] am
 *     #    put[0]: 0..<short>..4294967296..<bcopy>..(inf)
 *
 * A lane is a transport and a device; put[n] exists if lane n writes to remote
 * memory. Shared memory does so only for memory allocated by UCX, which an
 * arena need not be.
 */
#include "ucx/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

#define LANES_MAX 64
#define NAME_BYTES 64

/* "  4:posix/memory.0 md…" to "posix/memory". */
static bool lane_name(const char *text, char out[NAME_BYTES])
{
    const char *from = strchr(text, ':');
    size_t n = from != NULL ? strcspn(from + 1, " \n") : 0, end = n;
    if (n == 0) {
        return false;
    }
    while (end > 0 && from[end] >= '0' && from[end] <= '9') {
        end--;
    }
    n = end > 1 && end < n && from[end] == '.' ? end - 1 : n;
    snprintf(out, NAME_BYTES, "%.*s", (int)RF_MIN(n, (size_t)NAME_BYTES - 1),
             from + 1);
    return true;
}

/* Transports that map memory allocated by other processes. */
static const char *const segments[] = {"posix/", "sysv/", "xpmem/"};

static bool is_one_of(const char *lane, const char *const *transports, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strncmp(lane, transports[i], strlen(transports[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool reaches_anywhere(const char *lane)
{
    static const char *const no[] = {"posix/", "sysv/", "self/"};
    return lane[0] != '\0' && !is_one_of(lane, no, RF_ARRAY_SIZE(no));
}

bool rf_ucx_is_listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n) {
        if ((at == list || strchr(",^", at[-1]) != NULL) &&
            (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Adds a name to a list unless present. */
static void add_once(char list[RF_UCX_NAMES_BYTES], const char *name)
{
    const size_t used = strlen(list);
    if (!rf_ucx_is_listed(list, name)) {
        snprintf(list + used, RF_UCX_NAMES_BYTES - used, "%s%s",
                 used > 0 ? "," : "", name);
    }
}

static void add_lane(struct rf_ucx_lanes *lanes, const char *name)
{
    const bool tcp = strncmp(name, "tcp/", 4) == 0;
    if (lanes->tcp && !tcp) {
        lanes->device[0] = '\0';
    }
    lanes->tcp = tcp && (lanes->tcp || lanes->all[0] == '\0');
    if (lanes->tcp || !tcp) {
        add_once(lanes->device, name);
    }
    add_once(lanes->all, name);
    if (is_one_of(name, segments, RF_ARRAY_SIZE(segments))) {
        add_once(lanes->mapping, name);
    }
}

void rf_ucx_describe(const char *info, struct rf_ucx_lanes *out)
{
    char lanes[LANES_MAX][NAME_BYTES] = {{0}};
    *out = (struct rf_ucx_lanes){.rma = false};
    for (const char *line = info; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        const char *word = line + strspn(line, "# ");
        unsigned long lane;
        char *end;
        const bool names = strncmp(word, "lane[", 5) == 0;
        if (names || strncmp(word, "put[", 4) == 0) {
            lane = strtoul(strchr(word, '[') + 1, &end, 10);
            if (lane >= LANES_MAX || strncmp(end, "]:", 2) != 0) {
                out->rma = out->rma && !names;
            } else if (!names) {
                out->rma |= reaches_anywhere(lanes[lane]);
            } else if (lane_name(end + 2, lanes[lane])) {
                add_lane(out, lanes[lane]);
            }
        }
        line = next != NULL ? next + 1 : NULL;
    }
}
