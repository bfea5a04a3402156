/* Versions of what the program is linked with. */
#ifndef RF_COORDINATOR_COMMANDS_VERSIONS_H
#define RF_COORDINATOR_COMMANDS_VERSIONS_H

#include <jansson.h>

/* {library: version}. A new reference. */
json_t *rf_library_versions(void);

#endif
