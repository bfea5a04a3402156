/* See replay.h. */
#include "coordinator/records/replay.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/shell.h"
#include "coordinator/records/fields.h"

char *rf_replay_command(const char *program, const char *path,
                        uint32_t n_repeats)
{
    /* Keeps a leading dash from being read as an option. */
    char *file = rf_xasprintf("%s%s", path[0] == '-' ? "./" : "", path);
    char *words[] = {rf_shell_word(program), rf_shell_word(file)}, *text;
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
