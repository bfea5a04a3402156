/* Configuration keys of other programs. */
#ifndef RF_COMMON_FOREIGN_KEYS_H
#define RF_COMMON_FOREIGN_KEYS_H

/* The cluster.json equivalent with its path, such as "timeline.global_batch";
 * NULL when unknown. */
const char *rf_foreign_key(const char *key);

#endif
