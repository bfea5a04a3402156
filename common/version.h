/* Version of this program. The git id is in one object file, so that a new
 * commit rebuilds only that. */
#ifndef RF_COMMON_VERSION_H
#define RF_COMMON_VERSION_H

/* "0.1.0" */
const char *rf_version(void);

/* The git commit of the build, such as "1a2b3c4d5e6f" or "1a2b3c4d5e6f-dirty";
 * "unknown" if scripts/build-id cannot tell. */
const char *rf_build(void);

#endif
