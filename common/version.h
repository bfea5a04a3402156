/* Which program this is. The git id is in one object file, so that a new
 * commit rebuilds one file. */
#ifndef RF_COMMON_VERSION_H
#define RF_COMMON_VERSION_H

/* "0.1.0" */
const char *rf_version(void);

/* The git commit it was built from, e.g. "1a2b3c4" or "1a2b3c4-dirty";
 * "unknown" when it was built outside of git. */
const char *rf_build(void);

#endif
