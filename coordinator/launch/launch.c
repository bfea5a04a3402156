/*
 * Shared by all launchers: the program to start, environments, the gate that
 * limits parallel starts, and line splitting.
 *
 * The gate is a counter and a queue on the loop's thread; it never blocks.
 */
#include "coordinator/launch/launch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/shell.h"
#include "common/text.h"
#include "coordinator/launch/launch_internal.h"

const char *rf_launch_program(const struct rf_launch_order *order)
{
    const char *worker = order->settings->worker;
    return strchr(worker, '/') == NULL && order->local_worker != NULL &&
                   order->settings->n_wrap == 0
               ? order->local_worker
               : worker;
}

static bool begins_with_any(const char *text, const char *const *words)
{
    while (*words != NULL && strncmp(text, *words, strlen(*words)) != 0) {
        words++;
    }
    return *words != NULL;
}

char **rf_launch_environment(const char *const *without, char *added)
{
    char **list = NULL;
    size_t n = 0, cap = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (!begins_with_any(*entry, without)) {
            RF_PUSH(list, n, cap, *entry);
        }
    }
    if (added != NULL) {
        RF_PUSH(list, n, cap, added);
    }
    RF_PUSH(list, n, cap, NULL);
    return list;
}

/* --- The wrap ------------------------------------------------------------- */

/* `word` with every "{host}" replaced. */
static char *fill_in(const char *word, const char *node)
{
    static const char mark[] = "{host}";
    char *out = NULL;
    for (;;) {
        const char *at = strstr(word, mark);
        const size_t length = at != NULL ? (size_t)(at - word) : strlen(word);
        rf_text_add(&out, "", "%.*s%s", (int)length, word,
                    at != NULL ? node : "");
        if (at == NULL) {
            return out;
        }
        word = at + strlen(mark);
    }
}

char **rf_wrap_words(const struct rf_launch_config *how, const char *node,
                     const char *worker, const char *option)
{
    char **words = rf_xcalloc(how->n_wrap + 3, sizeof(*words));
    for (size_t i = 0; i < how->n_wrap; i++) {
        words[i] = fill_in(how->wrap[i], node);
    }
    words[how->n_wrap] = rf_xstrdup(worker);
    words[how->n_wrap + 1] = rf_xstrdup(option);
    return words;
}

void rf_wrap_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

char *rf_wrap_prefix(const struct rf_launch_config *how, const char *node)
{
    char *out = rf_xstrdup("");
    for (size_t i = 0; i < how->n_wrap; i++) {
        char *whole = fill_in(how->wrap[i], node);
        char *word = rf_shell_word(whole);
        rf_text_add(&out, "", "%s ", word);
        free(whole);
        free(word);
    }
    return out;
}

/* --- The gate ------------------------------------------------------------- */

struct rf_launch_gate {
    uint32_t limit, active;
    TAILQ_HEAD(, rf_gate_place) waiting;
};

struct rf_launch_gate *rf_launch_gate_create(uint32_t limit)
{
    struct rf_launch_gate *gate = rf_xcalloc(1, sizeof(*gate));
    gate->limit = limit > 0 ? limit : 1;
    TAILQ_INIT(&gate->waiting);
    return gate;
}

void rf_launch_gate_destroy(struct rf_launch_gate *gate)
{
    if (gate != NULL) {
        assert(TAILQ_EMPTY(&gate->waiting) && gate->active == 0);
        free(gate);
    }
}

static void let_in(struct rf_launch_gate *gate)
{
    while (!TAILQ_EMPTY(&gate->waiting) && gate->active < gate->limit) {
        struct rf_gate_place *place = TAILQ_FIRST(&gate->waiting);
        TAILQ_REMOVE(&gate->waiting, place, next);
        gate->active++;
        place->state = RF_GATE_IN;
        place->start(place);
    }
}

void rf_gate_enter(struct rf_launch_gate *gate, struct rf_gate_place *place)
{
    assert(place->state == RF_GATE_OUT);
    if (gate == NULL) {
        place->state = RF_GATE_IN;
        place->start(place);
        return;
    }
    place->state = RF_GATE_WAITING;
    TAILQ_INSERT_TAIL(&gate->waiting, place, next);
    let_in(gate);
}

void rf_gate_leave(struct rf_launch_gate *gate, struct rf_gate_place *place)
{
    if (gate != NULL && place->state == RF_GATE_WAITING) {
        TAILQ_REMOVE(&gate->waiting, place, next);
    } else if (gate != NULL && place->state == RF_GATE_IN) {
        gate->active--;
        place->state = RF_GATE_OUT;
        let_in(gate);
    }
    place->state = RF_GATE_OUT;
}

/* --- Lines ---------------------------------------------------------------- */

static void give_line(struct rf_lines *lines)
{
    if (lines->used > 0 && lines->line[lines->used - 1] == '\r') {
        lines->used--;
    }
    lines->line[lines->used] = '\0';
    rf_text_clean(lines->line, lines->used);
    lines->used = 0;
    lines->take(lines->line, lines->data);
}

void rf_lines_feed(struct rf_lines *lines, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            give_line(lines);
            continue;
        }
        if (lines->used == RF_LINE_MAX - 1) {
            give_line(lines);
        }
        lines->line[lines->used++] = bytes[i];
    }
}

void rf_lines_end(struct rf_lines *lines)
{
    if (lines->used > 0) {
        give_line(lines);
    }
}
