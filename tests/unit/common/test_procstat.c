/* What /proc says of a process. */
#include <sys/prctl.h>
#include <unistd.h>

#include "common/procstat.h"
#include "tests/unit/unit.h"

TEST(test_procstat_takes_names_of_any_bytes)
{
    static const char *const names[] = {"refit", "a) Z 1 (b", "two\nlines"};
    struct rf_procstat before = {.parent = 0}, now;
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        ck_assert_int_eq(prctl(PR_SET_NAME, names[i]), 0);
        ck_assert(rf_procstat_read(getpid(), &now));
        ck_assert_int_eq(now.state, 'R');
        ck_assert_int_eq(now.parent, getppid());
        ck_assert(i == 0 || now.start_ticks == before.start_ticks);
        before = now;
    }
}

TEST(test_procstat_knows_no_process_that_is_gone)
{
    struct rf_procstat found;
    ck_assert(!rf_procstat_read(0, &found));
}
