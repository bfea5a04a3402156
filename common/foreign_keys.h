/* Keys that people know from other programs' configurations. */
#ifndef RF_COMMON_FOREIGN_KEYS_H
#define RF_COMMON_FOREIGN_KEYS_H

/* What cluster.json calls it, with its place: "timeline.global_batch"; NULL:
 * not known. */
const char *rf_foreign_key(const char *key);

#endif
