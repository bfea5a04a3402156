/* Paths as cluster.json gives them. */
#ifndef RF_COORDINATOR_CONFIG_PATHS_H
#define RF_COORDINATOR_CONFIG_PATHS_H

/* "~/" is the home folder, a relative path starts in `folder`. malloc'ed. */
char *rf_paths_resolve(const char *folder, const char *path);

/* The same, never relative to the current folder. */
char *rf_paths_absolute(const char *folder, const char *path);

#endif
