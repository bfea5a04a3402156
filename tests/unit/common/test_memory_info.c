/* What memory there is, and blocks that would not fit into it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/memory_info.h"
#include "tests/unit/unit.h"

TEST(test_memory_available_is_a_part_of_all)
{
    ck_assert_uint_gt(rf_memory_available(), 0);
    ck_assert_uint_le(rf_memory_available(), rf_memory_total());
    ck_assert_uint_lt(rf_memory_private(), rf_memory_total());
}

TEST(test_a_large_block_that_does_not_fit_is_refused)
{
    AUTO_FREE char *block = rf_realloc_large(NULL, 0, 100);
    ck_assert_ptr_nonnull(block);
    block[99] = 'x';
    ck_assert_ptr_null(rf_realloc_large(block, 100, rf_memory_total()));
    block = rf_realloc_large(block, 100, 200);
    ck_assert_ptr_nonnull(block);
    ck_assert_int_eq(block[99], 'x');
}

TEST(test_what_takes_more_memory_than_is_left_is_refused)
{
    struct rf_err err = {0};
    ck_assert_int_eq(rf_memory_admit(100, "a list", &err), RF_OK);
    ck_assert_int_eq(rf_memory_admit(rf_memory_total(), "a list", &err),
                     RF_ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "a list: about "));
    ck_assert_ptr_nonnull(strstr(err.text, " needed, but "));
}

TEST(test_what_limits_of_the_process_forbid_is_refused)
{
    struct rf_err err = {0};
    struct rlimit before, none;
    enum rf_status status;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    status = rf_memory_admit(32 << 20, "a list", &err);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(status, RF_ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "ulimit -v"));
    ck_assert_int_eq(rf_memory_admit(0, "a list", &err), RF_OK);
}

TEST(test_memory_is_private_unless_it_is_mapped_as_shared)
{
    const size_t bytes = 4096;
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *private = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_ptr_ne(private, MAP_FAILED);
    ck_assert(!rf_memory_is_private(shared));
    ck_assert(rf_memory_is_private(private));
    ck_assert(rf_memory_is_private((char *)private + bytes - 1));
    ck_assert_int_eq(munmap(private, bytes), 0);
    ck_assert(!rf_memory_is_private(private));
    ck_assert_int_eq(munmap(shared, bytes), 0);
}
