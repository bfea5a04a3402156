/* Recording what a rank does: joined where it goes on, bounded, counted. */

#include "planner/schedule/schedule.h"
#include "tests/unit/unit.h"
#include "transport/info/trace.h"

static void add(struct rf_trace *trace, enum rf_trace_kind kind, int64_t start,
                int64_t end, uint32_t op)
{
    const struct rf_trace_event event = {start, end, 10, op, kind};
    rf_trace_add(trace, &event);
}

TEST(test_trace_joins_what_goes_on)
{
    struct rf_trace trace;
    rf_trace_init(&trace, 8);
    add(&trace, RF_TRACE_COPY, 0, 1000, 3);
    add(&trace, RF_TRACE_COPY, 1100, 2000, 3);
    ck_assert_uint_eq(trace.n, 1);
    ck_assert_int_eq(trace.events[0].end_ns, 2000);
    ck_assert_uint_eq(trace.events[0].bytes, 20);
    add(&trace, RF_TRACE_COPY, 2000, 3000, 4); /* another operation */
    add(&trace, RF_TRACE_COPY, 9000, 9500, 4); /* a gap */
    add(&trace, RF_TRACE_WAIT, 9500, 10000, RF_NO_OP);
    add(&trace, RF_TRACE_WAIT, 12000, 20000, RF_NO_OP); /* a poll between */
    ck_assert_uint_eq(trace.n, 4);
    ck_assert_int_eq(trace.events[3].end_ns, 20000);
    ck_assert_uint_eq(trace.dropped, 0);
    rf_trace_free(&trace);
}

TEST(test_trace_counts_what_does_not_fit)
{
    struct rf_trace trace;
    rf_trace_init(&trace, 2);
    for (uint32_t i = 0; i < 5; i++) {
        int64_t at = INT64_C(10000) * i;
        add(&trace, RF_TRACE_SEND, at, at + 10, i);
    }
    /* Goes on with the last one, which was dropped, not with the last kept. */
    add(&trace, RF_TRACE_SEND, 10010, 10020, 1);
    ck_assert_uint_eq(trace.n, 2);
    ck_assert_uint_eq(trace.dropped, 4);
    ck_assert_int_eq(trace.events[1].end_ns, 10010);
    rf_trace_free(&trace);
    ck_assert_ptr_null(trace.events);
}

TEST(test_trace_names_every_kind)
{
    for (int kind = 0; kind < RF_TRACE_KINDS; kind++) {
        ck_assert_ptr_nonnull(rf_trace_names[kind]);
    }
    ck_assert_ptr_null(rf_trace_names[RF_TRACE_KINDS]);
}
