/* See descriptors.h. */
#include "tests/lib/descriptors.h"

#include <unistd.h>

#include "tests/unit/unit.h"

struct rlimit descriptors_run_out(uv_loop_t *loop)
{
    struct rlimit limit, low;
    int next;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    next = dup(loop->emfile_fd); /* the least free number */
    ck_assert_int_ge(next, 0);
    low = (struct rlimit){(rlim_t)next, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    loop->emfile_fd = -1; /* the number stays in use */
    close(next);
    return limit;
}
