#include "coordinator/records/remarks.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"

/* Where all records of a table are meant, more than so many. */
#define NAMED_MAX 3

/* Appends to a list, which begins with `head`. */
static void add(char **list, const char *head, const char *between,
                const char *text)
{
    char *longer = rf_xasprintf("%s%s%s", *list != NULL ? *list : head,
                                *list != NULL ? between : "", text);
    free(*list);
    *list = longer;
}

/* Whether a way has nothing but TCP: "6 messages by tcp/lo,tcp/eth0". */
static bool is_tcp(const char *way)
{
    const char *name = strstr(way, " by ");
    if (name == NULL) {
        return false;
    }
    for (name += 4; strncmp(name, "tcp/", 4) == 0; name++) {
        name += strcspn(name, ",");
        if (*name == '\0') {
            return true;
        }
    }
    return false;
}

/* Those of setup.registration; NULL: none. To be freed. */
static char *list_tcp(const char *at)
{
    char *list = NULL;
    while ((at = strstr(at, "; ")) != NULL) {
        char *way = rf_xasprintf("%.*s", (int)strcspn(at + 2, ";"), at + 2);
        if (is_tcp(way)) {
            add(&list, "", ", ", way);
        }
        free(way);
        at += 2;
    }
    return list;
}

/* What the ways over TCP are, where UCX chose them; NULL: none. */
static char *over_tcp(const json_t *record)
{
    const char *ways = rf_result_text(record, "setup", "registration");
    return strncmp(ways, "UCX ", 4) == 0 ? list_tcp(ways) : NULL;
}

/* By which way ranks of a node send weights that they could have mapped; NULL:
 * none do. To be freed. */
static char *unmapped(const json_t *record)
{
    const char *way = rf_doubts_unmapped(record);
    if (!rf_doubts_has(record, RF_DOUBT_UNMAPPED)) {
        return NULL;
    }
    return way != NULL ? rf_xasprintf("%.*s", (int)strcspn(way, ";"), way)
                       : rf_xstrdup("in a repeat");
}

/* The resource that refits have shown to do more than yardsticks and probes
 * have; NULL: none. To be freed. */
static char *slow_yardsticks(const json_t *record)
{
    static const char *const bounds[] = {"bound", "schedule_bound"};
    const char *resource = NULL;
    if (!rf_doubts_has(record, RF_DOUBT_SLOW_YARDSTICKS)) {
        return NULL;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(bounds) && resource == NULL; i++) {
        resource = json_string_value(
            rf_result_value(record, bounds[i], "underestimated"));
    }
    return rf_xstrdup(resource != NULL ? resource : "in a repeat");
}

static struct rf_remark_group *group_of(struct rf_remark_groups *groups,
                                        const char *why)
{
    for (size_t i = 0; i < groups->n; i++) {
        if (strcmp(groups->list[i].why, why) == 0) {
            return &groups->list[i];
        }
    }
    RF_PUSH(groups->list, groups->n, groups->cap,
            ((struct rf_remark_group){.why = rf_xstrdup(why)}));
    return &groups->list[groups->n - 1];
}

/* Takes `why` over; NULL: nothing. */
static void note(struct rf_remark_groups *groups, const char *run,
                 const json_t *record, char *why)
{
    struct rf_remark_group *group;
    char *name;
    if (why == NULL) {
        return;
    }
    group = group_of(groups, why);
    name = rf_xasprintf("%s%s%.200s", run != NULL ? run : "",
                        run != NULL ? "/" : "",
                        rf_result_text(record, NULL, "name"));
    add(&group->names, "", ", ", name);
    group->n++;
    free(name);
    free(why);
}

void rf_remarks_add(struct rf_remarks *remarks, const char *run,
                    const json_t *record)
{
    remarks->n_records++;
    note(&remarks->of[RF_REMARK_UNSTABLE], run, record,
         rf_doubts_reasons(record));
    note(&remarks->of[RF_REMARK_SLOW_YARDSTICKS], run, record,
         slow_yardsticks(record));
    note(&remarks->of[RF_REMARK_OVER_TCP], run, record, over_tcp(record));
    note(&remarks->of[RF_REMARK_UNMAPPED], run, record, unmapped(record));
}

char *rf_remarks_line(const struct rf_remarks *remarks, enum rf_remark about)
{
    static const char *const heads[RF_REMARKS] = {
        "unstable, see flags: ",
        "yardsticks and probes were slowed, refits less, so vs contiguous is "
        "too low: ",
        "UCX took TCP: ",
        "no room in /dev/shm (or UCX_POSIX_DIR) for weights, which makes ranks "
        "of a node slow: "};
    const struct rf_remark_groups *groups = &remarks->of[about];
    char *line = NULL;
    for (size_t i = 0; i < groups->n; i++) {
        const struct rf_remark_group *group = &groups->list[i];
        char *part = group->n == remarks->n_records && group->n > NAMED_MAX
                         ? rf_xasprintf("all %zu (%s)", group->n, group->why)
                         : rf_xasprintf("%s (%s)", group->names, group->why);
        add(&line, heads[about], "; ", part);
        free(part);
    }
    if (line != NULL) {
        rf_text_clean_line(line, strlen(line));
    }
    return line;
}

void rf_remarks_free(struct rf_remarks *remarks)
{
    for (int about = 0; about < RF_REMARKS; about++) {
        struct rf_remark_groups *groups = &remarks->of[about];
        for (size_t i = 0; i < groups->n; i++) {
            free(groups->list[i].why);
            free(groups->list[i].names);
        }
        free(groups->list);
    }
    memset(remarks, 0, sizeof(*remarks));
}
