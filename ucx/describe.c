/*
 * What ucp_ep_print_info() says of an endpoint, which has no other interface in
 * UCX 1.13:
 *     #   lane[0]:  4:posix/memory.0 md[3] -> md[3]/posix/sysdev[255] am
 * am_bw#0 #    put[0]: 0..<short>..4294967296..<bcopy>..(inf) A lane is a
 * transport and a device; put[n] is there where lane n writes to remote memory.
 * Shared memory does so only where UCX itself has allocated it, which an arena
 * is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core.h"
#include "ucx/carrier.h"

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

static bool writes_anywhere(const char *lane)
{
    static const char *const segments[] = {"posix/", "sysv/", "self/"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(segments); i++) {
        if (strncmp(lane, segments[i], strlen(segments[i])) == 0) {
            return false;
        }
    }
    return lane[0] != '\0';
}

/* Whether `name` is one of the names in a list with commas. */
static bool has(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n) {
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

void rf_ucx_describe(const char *info, char *out, size_t size, bool *puts)
{
    char lanes[LANES_MAX][NAME_BYTES] = {{0}};
    out[0] = '\0';
    *puts = false;
    for (const char *line = info; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        const char *word = line + strspn(line, "# ");
        unsigned long lane;
        char *end;
        const bool names = strncmp(word, "lane[", 5) == 0;
        if (names || strncmp(word, "put[", 4) == 0) {
            lane = strtoul(strchr(word, '[') + 1, &end, 10);
            if (lane >= LANES_MAX || strncmp(end, "]:", 2) != 0) {
                *puts = *puts && !names;
            } else if (!names) {
                *puts |= writes_anywhere(lanes[lane]);
            } else if (lane_name(end + 2, lanes[lane]) &&
                       !has(out, lanes[lane])) {
                const size_t used = strlen(out);
                snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "",
                         lanes[lane]);
            }
        }
        line = next != NULL ? next + 1 : NULL;
    }
}
