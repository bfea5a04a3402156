/*
 * Models of the Hugging Face Hub in this machine's cache, where its programs
 * keep what they fetch. Reads folders only; nothing goes over a network.
 */
#ifndef RF_COORDINATOR_CONFIG_HUB_CACHE_H
#define RF_COORDINATOR_CONFIG_HUB_CACHE_H

#include <stdbool.h>

/* "Qwen/Qwen3-8B": could name a model of the Hub. Paths to JSON files and ones
 * that start with "." or "/" cannot. */
bool rf_hub_cache_is_name(const char *text);

/* The cache's folder: HF_HUB_CACHE, else "hub" of HF_HOME, whose default is
 * ~/.cache/huggingface. malloc'ed. */
char *rf_hub_cache_folder(void);

/* The folder of the snapshot of `name` that `revision` names (a commit, branch
 * or tag), if it has a file like `pattern`; with `revision` NULL of "main", or
 * else the newest snapshot that has one. Its last component is the commit.
 * malloc'ed; NULL: there is none. */
char *rf_hub_cache_find(const char *name, const char *revision,
                        const char *pattern);

#endif
