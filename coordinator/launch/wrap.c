/* See wrap.h. */
#include "coordinator/launch/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/shell.h"
#include "common/text.h"

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
