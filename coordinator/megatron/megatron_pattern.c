/*
 * Patterns of layers. See megatron_pattern.h.
 *
 * A stack of sums, one per open parenthesis: `term` is the operand of a
 * following "*", `sum` the part before it. The limits of a model bound lists,
 * the stack bounds the depth.
 */
#include "coordinator/megatron/megatron_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define MOST_DEPTH 8
#define MOST_LAYERS 65536

struct sum {
    json_t *sum, *term; /* `term` NULL: an operand must follow */
};

struct pattern_reader {
    const char *at;
    struct sum stack[MOST_DEPTH];
    unsigned depth; /* of the innermost sum */
    bool failed;
};

static void skip_blanks(struct pattern_reader *in)
{
    while (isspace((unsigned char)*in->at)) {
        in->at++;
    }
}

/* Takes `mark` if it is next; false otherwise. */
static bool take(struct pattern_reader *in, char mark)
{
    skip_blanks(in);
    if (*in->at != mark) {
        return false;
    }
    in->at++;
    return true;
}

static json_int_t take_number(struct pattern_reader *in)
{
    char *end;
    long value;
    skip_blanks(in);
    errno = 0;
    value = strtol(in->at, &end, 10);
    if (!isdigit((unsigned char)*in->at) || errno != 0 || value > MOST_LAYERS) {
        in->failed = true;
        return 0;
    }
    in->at = end;
    return value;
}

static void append(struct pattern_reader *in, json_t *list, const json_t *more)
{
    if (json_array_size(list) + json_array_size(more) > MOST_LAYERS) {
        in->failed = true;
        return;
    }
    for (size_t i = 0; i < json_array_size(more); i++) {
        json_array_append(list, json_array_get(more, i));
    }
}

/* Reads on after "[". */
static json_t *take_list(struct pattern_reader *in)
{
    json_t *list = json_array();
    while (!in->failed && !take(in, ']')) {
        if (json_array_size(list) > 0 && !take(in, ',')) {
            in->failed = true;
        }
        json_array_append_new(list, json_integer(take_number(in)));
        in->failed |= json_array_size(list) > MOST_LAYERS;
    }
    return list;
}

static void repeat(struct pattern_reader *in, struct sum *top)
{
    json_int_t times = take_number(in);
    json_t *all = json_array();
    for (json_int_t i = 0; i < times && !in->failed; i++) {
        append(in, all, top->term);
    }
    json_decref(top->term);
    top->term = all;
}

static void add_term(struct pattern_reader *in, struct sum *top)
{
    append(in, top->sum, top->term);
    json_decref(top->term);
    top->term = NULL;
}

static void open_sum(struct pattern_reader *in)
{
    if (in->depth + 1 == MOST_DEPTH) {
        in->failed = true;
        return;
    }
    in->stack[++in->depth] = (struct sum){.sum = json_array()};
}

static void close_sum(struct pattern_reader *in)
{
    struct sum *top = &in->stack[in->depth];
    add_term(in, top);
    in->stack[--in->depth].term = top->sum;
    *top = (struct sum){NULL, NULL};
}

static void take_token(struct pattern_reader *in)
{
    struct sum *top = &in->stack[in->depth];
    if (top->term == NULL) {
        if (take(in, '[')) {
            top->term = take_list(in);
        } else if (take(in, '(')) {
            open_sum(in);
        } else {
            in->failed = true;
        }
    } else if (take(in, '*')) {
        repeat(in, top);
    } else if (take(in, '+')) {
        add_term(in, top);
    } else if (in->depth > 0 && take(in, ')')) {
        close_sum(in);
    } else {
        in->failed = true;
    }
}

json_t *rf_megatron_pattern(const char *text)
{
    struct pattern_reader in = {.at = text};
    skip_blanks(&in);
    if (isdigit((unsigned char)*in.at)) {
        json_int_t number = take_number(&in);
        skip_blanks(&in);
        return in.failed || *in.at != '\0' ? NULL : json_integer(number);
    }
    in.stack[0].sum = json_array();
    do {
        take_token(&in);
        skip_blanks(&in);
    } while (!in.failed && *in.at != '\0');
    in.failed |= in.depth > 0 || in.stack[0].term == NULL;
    if (!in.failed) {
        add_term(&in, &in.stack[0]);
    }
    for (unsigned i = 0; i < MOST_DEPTH; i++) {
        if (i > 0 || in.failed) {
            json_decref(in.stack[i].sum);
        }
        json_decref(in.stack[i].term);
    }
    return in.failed ? NULL : in.stack[0].sum;
}
