/* See megatron_lab.h. */
#include "tests/unit/coordinator/megatron/megatron_lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/megatron/megatron_cluster.h"
#include "tests/lib/asserts.h"

#define MOST_WORDS 100

/* The words of a line, which live until the next call. */
static char **words_of(const char *line, int *n)
{
    static char *words[MOST_WORDS], *copy;
    char *rest;
    free(copy);
    rest = copy = rf_xstrdup(line);
    *n = 0;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] != '\0') {
            ck_assert_int_lt(*n, MOST_WORDS - 1);
            words[(*n)++] = word;
        }
    }
    words[*n] = NULL;
    return words;
}

enum rf_status megatron_take(const char *line, struct rf_megatron_args *args,
                             int *argc, char ***argv, struct rf_err *err)
{
    int n;
    char **words = words_of(line, &n);
    enum rf_status status = rf_megatron_take(&n, words, 0, args, err);
    if (argc != NULL) {
        *argc = n;
    }
    if (argv != NULL) {
        *argv = words;
    }
    return status;
}

enum rf_status megatron_cli(const char *line, struct rf_cli *cli,
                            struct rf_err *err)
{
    int n;
    char **words = words_of(line, &n);
    return rf_cli_parse(n, words, cli, err);
}

json_t *megatron_cluster(const char *fmt, ...)
{
    struct rf_megatron_args args;
    struct rf_err err = {.text = ""};
    json_t *out = NULL;
    char line[2000];
    va_list list;
    va_start(list, fmt);
    vsnprintf(line, sizeof(line), fmt, list);
    va_end(list);
    assert_ok(megatron_take(line, &args, NULL, NULL, &err), err);
    assert_ok(rf_megatron_cluster(&args, &out, &err), err);
    rf_megatron_args_free(&args);
    return out;
}

const char *megatron_error(const char *line)
{
    static struct rf_err err;
    struct rf_megatron_args args;
    json_t *out = NULL;
    enum rf_status status = megatron_take(line, &args, NULL, NULL, &err);
    if (status == RF_OK) {
        status = rf_megatron_cluster(&args, &out, &err);
        rf_megatron_args_free(&args);
    }
    ck_assert_msg(status != RF_OK, "not refused: %s", line);
    return err.text;
}
