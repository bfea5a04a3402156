/* Which variables matter to ranks. */

#include "common/variables.h"

#include "tests/unit/unit.h"

TEST(test_variables_of_libraries_matter_and_no_secret)
{
    ck_assert(rf_variable_matters("NCCL_DEBUG"));
    ck_assert(rf_variable_matters("CUDA_VISIBLE_DEVICES"));
    ck_assert(rf_variable_matters("REFIT_UCX_RMA"));
    ck_assert(rf_variable_matters("GLIBC_TUNABLES"));
    ck_assert(!rf_variable_matters("GLIBC_TUNABLES_2"));
    ck_assert(!rf_variable_matters("NCCL_COMM_ID"));
    ck_assert(!rf_variable_matters("NCC"));
    ck_assert(!rf_variable_matters("HOME"));
}
