/* Core files. See core_dumps.h. */
#include "common/core_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

void rf_core_dumps_forbid(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* lowering is always allowed */
    /* A core_pattern program ignores the limit. */
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
}
