/* How much of a file an op reads. */

#include "transport/info/disk_reads.h"

#include "tests/lib/ops.h"
#include "tests/unit/unit.h"

/* Eight rows begin `stride` bytes apart; an op reads `run` bytes of each. */
LOOP_TEST(test_short_rows_are_read_with_what_lies_between, 6)
{
    static const struct {
        uint64_t run, stride, reads;
    } cases[] = {
        {1024, 4096, 7 * 4096 + 1024},
        {1024, 1024, 8 * 1024}, /* nothing lies between */
        {1024, 8192, 7 * 8192 + 1024},
        {1024, 8193, 8 * 1024}, /* too far apart */
        {32767, 65536, 7 * 65536 + 32767},
        {32768, 65536, 8 * 32768}, /* long enough to be read one by one */
    };
    struct rf_op op = {
        .dep = RF_NO_OP, .src_mem = RF_MEM_TRAIN, .dst_mem = RF_MEM_INFER};
    op_row(&op, cases[_i].run);
    op.box.extent[RF_BOX_DIMS - 2] = 8;
    op.src_stride[RF_BOX_DIMS - 2] = cases[_i].stride;
    op.dst_stride[RF_BOX_DIMS - 2] = cases[_i].run + 1;
    ck_assert_uint_eq(rf_disk_reads_bytes(&op), cases[_i].reads);
}
