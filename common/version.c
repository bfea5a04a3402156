/* Version and build id, both given by the Makefile. See version.h. */
#include "common/version.h"

const char *rf_version(void)
{
    return RF_VERSION;
}

const char *rf_build(void)
{
    return RF_BUILD;
}
