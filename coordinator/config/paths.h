/* Paths in cluster.json. */
#ifndef RF_COORDINATOR_CONFIG_PATHS_H
#define RF_COORDINATOR_CONFIG_PATHS_H

/* Resolves "~/" to the home folder and a relative path against `folder`.
 * malloc'ed. */
char *rf_paths_resolve(const char *folder, const char *path);

/* The same, but always absolute. */
char *rf_paths_absolute(const char *folder, const char *path);

#endif
