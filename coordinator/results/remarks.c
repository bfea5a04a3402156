#include "coordinator/results/remarks.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/results/fields.h"
#include "coordinator/results/flags.h"

/* Appends to a list, which begins with `head`. */
static void add(char **list, const char *head, const char *between,
                const char *text)
{
    char *longer = rf_xasprintf("%s%s%s", *list != NULL ? *list : head,
                                *list != NULL ? between : "", text);
    free(*list);
    *list = longer;
}

/* The ways of setup.registration that lead over TCP, "6 messages by tcp/eth0";
 * NULL: none. To be freed. */
static char *list_tcp(const json_t *record)
{
    const char *at = rf_result_text(record, "setup", "registration");
    char *list = NULL;
    while ((at = strstr(at, "; ")) != NULL) {
        char *way = rf_xasprintf("%.*s", (int)strcspn(at + 2, ";"), at + 2);
        const char *names = strstr(way, " by ");
        if (names != NULL && (strstr(names, " tcp/") != NULL ||
                              strstr(names, ",tcp/") != NULL)) {
            add(&list, "", ", ", way);
        }
        free(way);
        at += 2;
    }
    return list;
}

static void add_over_tcp(char **list, const json_t *record)
{
    const char *method = rf_result_text(record, "scenario", "method");
    char *ways = strcmp(method, "ucx") == 0 ? list_tcp(record) : NULL, *one;
    if (ways == NULL) {
        return;
    }
    one =
        rf_xasprintf("%.200s (%s)", rf_result_text(record, NULL, "name"), ways);
    add(list, "UCX took TCP: ", "; ", one);
    rf_text_clean_line(*list, strlen(*list));
    free(one);
    free(ways);
}

void rf_remarks_add(struct rf_remarks *remarks, const json_t *record)
{
    rf_flags_collect(&remarks->lines[RF_REMARK_UNSTABLE], record);
    add_over_tcp(&remarks->lines[RF_REMARK_OVER_TCP], record);
}

void rf_remarks_free(struct rf_remarks *remarks)
{
    for (int i = 0; i < RF_REMARKS; i++) {
        free(remarks->lines[i]);
        remarks->lines[i] = NULL;
    }
}
