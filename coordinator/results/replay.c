/* See replay.h. */
#include "coordinator/results/replay.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/results/fields.h"

/* Whether a shell takes it as it is. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:,+@%";
    return word[0] != '\0' && strspn(word, plain) == strlen(word);
}

/* As one word of a POSIX shell. To be freed. */
static char *quoted(const char *word)
{
    char *out, *at;
    if (is_plain(word)) {
        return rf_xstrdup(word);
    }
    out = at = rf_xmalloc(4 * strlen(word) + 3);
    *at++ = '\'';
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            at = stpcpy(at, "'\\''");
        } else {
            *at++ = *word;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}

char *rf_replay_command(const char *program, const char *path,
                        uint32_t n_repeats)
{
    /* A path that begins with a dash would be an option. */
    char *file = rf_xasprintf("%s%s", path[0] == '-' ? "./" : "", path);
    char *words[] = {quoted(program), quoted(file)}, *text;
    char repeat[32] = "";
    if (n_repeats > 1) {
        snprintf(repeat, sizeof(repeat), " --repeat %u", n_repeats);
    }
    text = rf_xasprintf("%s rerun %s%s", words[0], words[1], repeat);
    for (size_t i = 0; i < RF_ARRAY_SIZE(words); i++) {
        free(words[i]);
    }
    free(file);
    return text;
}

char *rf_replay_of_record(const char *program, const char *path,
                          const json_t *record)
{
    const json_t *digest = rf_result_value(record, "plan", "digest");
    return json_is_string(digest)
               ? rf_replay_command(program, path,
                                   (uint32_t)json_array_size(
                                       json_object_get(record, "repeats")))
               : NULL;
}
