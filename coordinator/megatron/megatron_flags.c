/*
 * Reading Megatron-LM's flags. See megatron_flags.h.
 *
 * A flag that changes nothing, or is refused, takes all words up to the next
 * option as values, as argparse allows for some flags; their meaning is
 * ignored.
 */
#include "coordinator/megatron/megatron_flags.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "coordinator/megatron/megatron_pattern.h"
#include "coordinator/megatron/megatron_table.h"

/* One flag of a command line, "--name", "--name value ..." or "--name=value".
 */
struct given {
    char *name;
    const char *value; /* after "=", NULL: none */
    char **words;      /* after it, up to the next option */
    int n_words;
};

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && word[1] != '.' &&
           !isdigit((unsigned char)word[1]);
}

static struct given given_at(char **argv, int argc, int i)
{
    const char *equals = strchr(argv[i], '=');
    size_t size = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
    struct given given = {.value = equals != NULL ? equals + 1 : NULL,
                          .words = argv + i + 1};
    given.name = rf_xasprintf("%.*s", (int)size - 2, argv[i] + 2);
    while (i + 1 + given.n_words < argc &&
           !is_option(given.words[given.n_words])) {
        given.n_words++;
    }
    return given;
}

static const struct rf_megatron_flag *find(const char *name)
{
    for (const struct rf_megatron_flag *f = rf_megatron_flags; f->name != NULL;
         f++) {
        if (strcmp(f->name, name) == 0) {
            return f;
        }
    }
    return NULL;
}

void rf_megatron_is_idle(struct rf_megatron_args *args, const char *name)
{
    if (!rf_json_has_text(args->idle, name)) {
        json_array_append_new(args->idle, json_string(name));
    }
}

const char *rf_megatron_nearest(const char *word)
{
    static const char *const sizes[][2] = {
        {"tp", "tensor-model-parallel-size"},
        {"pp", "pipeline-model-parallel-size"},
        {"cp", "context-parallel-size"},
        {"ep", "expert-model-parallel-size"},
        {"etp", "expert-tensor-parallel-size"}};
    const char *bare = word + strspn(word, "-");
    const size_t size = strcspn(bare, "=");
    const char **names = NULL;
    const char *nearest;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < RF_ARRAY_SIZE(sizes); i++) {
        if (strlen(sizes[i][0]) == size &&
            strncmp(bare, sizes[i][0], size) == 0) {
            return sizes[i][1];
        }
    }
    for (const struct rf_megatron_flag *f = rf_megatron_flags; f->name != NULL;
         f++) {
        RF_PUSH(names, n, cap, f->name);
    }
    for (const char *const *idle = rf_megatron_idle; *idle != NULL; idle++) {
        RF_PUSH(names, n, cap, *idle);
    }
    RF_PUSH(names, n, cap, NULL);
    nearest = rf_nearest_word(bare, names);
    free(names);
    return nearest;
}

static enum rf_status read_number(const struct rf_megatron_flag *flag,
                                  const char *text, long long least,
                                  json_t **out, struct rf_err *err)
{
    char *end;
    long long value;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least) {
        return rf_err_set(err, RF_ERR_USAGE, "--%s %.60s: must be an integer%s",
                          flag->name, text,
                          least > 0 ? " of 1 or more" : " of 0 or more");
    }
    *out = json_integer(value);
    return RF_OK;
}

/* Splits the words of a flag into a list that ends with NULL. Returns their
 * text, to be freed along with the list. */
static char *split_words(const char *words, const char ***list)
{
    char *copy = rf_xstrdup(words), *rest = copy, *word;
    size_t n = 0, cap = 0;
    *list = NULL;
    while ((word = strsep(&rest, " ")) != NULL) {
        RF_PUSH(*list, n, cap, word);
    }
    RF_PUSH(*list, n, cap, NULL);
    return copy;
}

static enum rf_status no_such_word(const struct rf_megatron_flag *flag,
                                   const char *const *list, const char *text,
                                   struct rf_err *err)
{
    char all[128] = "";
    for (size_t i = 0, used = 0; list[i] != NULL && used < sizeof(all); i++) {
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
                                 i > 0 ? ", " : "", list[i]);
    }
    return rf_err_set(err, RF_ERR_USAGE, "--%s %.60s: must be one of %s%s",
                      flag->name, text, all, rf_did_you_mean(text, list).text);
}

static enum rf_status read_word(const struct rf_megatron_flag *flag,
                                const char *text, json_t **out,
                                struct rf_err *err)
{
    const char **list;
    char *words = split_words(flag->words, &list);
    enum rf_status status = RF_OK;
    if (rf_word_is_one_of(text, list)) {
        *out = json_string(text);
    } else {
        status = no_such_word(flag, list, text, err);
    }
    free(list);
    free(words);
    return status;
}

/* Reads the value of a flag that has one. */
static enum rf_status read_value(const struct rf_megatron_flag *flag,
                                 const char *text, json_t **out,
                                 struct rf_err *err)
{
    switch (flag->kind) {
    case RF_MEGATRON_COUNT:
    case RF_MEGATRON_SIZE:
        return read_number(flag, text, flag->kind == RF_MEGATRON_SIZE, out,
                           err);
    case RF_MEGATRON_PATTERN:
        *out = rf_megatron_pattern(text);
        return *out != NULL
                   ? RF_OK
                   : rf_err_set(err, RF_ERR_USAGE,
                                "--%s %.60s: must be a number, or a list such "
                                "as [0]*3+[1]*24 with an entry for each layer",
                                flag->name, text);
    case RF_MEGATRON_TEXT:
        *out = json_string(text);
        return *out != NULL ? RF_OK
                            : rf_err_set(err, RF_ERR_USAGE,
                                         "--%s: must be UTF-8", flag->name);
    default:
        return read_word(flag, text, out, err);
    }
}

/* Takes a flag that has effect; *used is the number of following words it
 * takes. */
static enum rf_status take_value(const struct rf_megatron_flag *flag,
                                 const struct given *given,
                                 struct rf_megatron_args *out, int *used,
                                 struct rf_err *err)
{
    const char *text = given->value;
    json_t *value = NULL;
    enum rf_status status;
    *used = 0;
    if (flag->kind == RF_MEGATRON_SWITCH) {
        if (text != NULL) {
            return rf_err_set(err, RF_ERR_USAGE, "--%s takes no value",
                              flag->name);
        }
        json_object_set_new(out->values, flag->name, json_true());
        return RF_OK;
    }
    if (text == NULL && given->n_words > 0) {
        text = given->words[0];
        *used = flag->kind == RF_MEGATRON_TEXT ? given->n_words : 1;
    }
    if (text == NULL || text[0] == '\0') {
        return rf_err_set(err, RF_ERR_USAGE, "--%s requires a value",
                          flag->name);
    }
    status = read_value(flag, text, &value, err);
    if (status == RF_OK) {
        json_object_set_new(out->values, flag->name, value);
    }
    return status;
}

static enum rf_status refuse(const struct rf_megatron_flag *flag,
                             const struct given *given, struct rf_err *err)
{
    const char *text = given->value != NULL ? given->value
                       : given->n_words > 0 ? given->words[0]
                                            : "";
    if (flag->fallback != NULL && strcmp(text, flag->fallback) == 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_USAGE, "--%s%s%.60s: %s", flag->name,
                      text[0] != '\0' ? " " : "", text, flag->words);
}

/* Takes a known flag "--name"; *known is false for the command's own options
 * and for unknown ones. */
static enum rf_status take_flag(const struct given *given,
                                struct rf_megatron_args *out, bool *known,
                                int *used, struct rf_err *err)
{
    const struct rf_megatron_flag *flag = find(given->name);
    enum rf_status status = RF_OK;
    *known = true;
    *used = given->n_words;
    if (flag != NULL && flag->kind != RF_MEGATRON_REFUSED) {
        return take_value(flag, given, out, used, err);
    }
    if (flag == NULL && !rf_word_is_one_of(given->name, rf_megatron_idle)) {
        *known = false;
        return RF_OK;
    }
    if (flag != NULL) {
        status = refuse(flag, given, err);
    }
    if (status == RF_OK) {
        rf_megatron_is_idle(out, given->name);
    }
    return status;
}

/* The number of words before the flags that call the benchmark, as in a pasted
 * line: "python benchmark_refit.py". */
static int pasted_words(int n, char *const *words)
{
    const char *interpreter = n > 0 ? strrchr(words[0], '/') : NULL;
    int count = 0;
    if (n == 0) {
        return 0;
    }
    interpreter = interpreter != NULL ? interpreter + 1 : words[0];
    count += strncmp(interpreter, "python", strlen("python")) == 0;
    if (count < n) {
        const char *end = strrchr(words[count], '.');
        count += end != NULL && strcmp(end, ".py") == 0;
    }
    return count;
}

enum rf_status rf_megatron_take(int *argc, char **argv, int first,
                                struct rf_megatron_args *out,
                                struct rf_err *err)
{
    enum rf_status status = RF_OK;
    int kept = first;
    first += pasted_words(*argc - first, argv + first);
    *out = (struct rf_megatron_args){json_object(), json_array()};
    for (int i = first; i < *argc && status == RF_OK; i++) {
        bool known = false;
        int used = 0;
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0') {
            struct given given = given_at(argv, *argc, i);
            status = take_flag(&given, out, &known, &used, err);
            free(given.name);
        }
        if (known) {
            i += used;
        } else {
            argv[kept++] = argv[i];
        }
    }
    if (status != RF_OK) {
        rf_megatron_args_free(out);
        return status;
    }
    argv[kept] = NULL;
    *argc = kept;
    return RF_OK;
}

void rf_megatron_args_free(struct rf_megatron_args *args)
{
    json_decref(args->values);
    json_decref(args->idle);
    *args = (struct rf_megatron_args){NULL, NULL};
}
