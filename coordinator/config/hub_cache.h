/*
 * Models of the Hugging Face Hub in this machine's cache, where its programs
 * keep downloads. Reads folders only; never uses the network.
 */
#ifndef RF_COORDINATOR_CONFIG_HUB_CACHE_H
#define RF_COORDINATOR_CONFIG_HUB_CACHE_H

#include <stdbool.h>

/* Whether the text could name a model of the Hub, as "Qwen/Qwen3-8B" does.
 * Paths to JSON files and paths that start with "." or "/" cannot. */
bool rf_hub_cache_is_name(const char *text);

/* The cache's folder: HF_HUB_CACHE, else "hub" of HF_HOME, whose default is
 * ~/.cache/huggingface. malloc'ed. */
char *rf_hub_cache_folder(void);

/* The folder of a snapshot of `name` that has a file like `pattern`: the one at
 * `revision` (a commit, branch or tag), or, with `revision` NULL, that of
 * "main", else the newest that has such a file. Its last component is the
 * commit. malloc'ed; NULL: none. */
char *rf_hub_cache_find(const char *name, const char *revision,
                        const char *pattern);

#endif
