/* Core files. See core.h. */
#include "common/core.h"

#include <sys/resource.h>

void rf_core_forbid(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* less is always allowed */
}
