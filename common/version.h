/* Which program this is. The git id is in one object file, so that a new
 * commit rebuilds one file. */
#ifndef RF_COMMON_VERSION_H
#define RF_COMMON_VERSION_H

/* "0.1.0" */
const char *rf_version(void);

/* The git commit it was built from, e.g. "1a2b3c4d5e6f" or
 * "1a2b3c4d5e6f-dirty"; "unknown" where scripts/build-id cannot tell. */
const char *rf_build(void);

#endif
