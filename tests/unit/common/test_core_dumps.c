/* No core files. */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "common/core_dumps.h"
#include "tests/unit/unit.h"

TEST(test_core_dumps_stay_forbidden)
{
    struct rlimit limit;
    rf_core_dumps_forbid();
    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 0);
    ck_assert_uint_eq(limit.rlim_max, 0);
    /* core_pattern with a program does not ask for the limit. */
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L), 0);
}
