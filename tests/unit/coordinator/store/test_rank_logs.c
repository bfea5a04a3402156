/* The logs of ranks: which there are, and what is in them. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/store/rank_logs.h"
#include "coordinator/store/result_json.h"
#include "tests/lib/result_lab.h"
#include "tests/unit/unit.h"

static json_t *record_of(const struct rf_attempt *attempt, bool all)
{
    json_auto_t *nodes = json_array();
    const struct rf_result_run run = {.config = result_lab.config,
                                      .model = result_lab.model,
                                      .run_id = "0123",
                                      .logs = all,
                                      .maker = result_lab.settings.maker,
                                      .environment = nodes};
    return rf_result_json(&run, attempt);
}

FIXTURE(result_lab_open, result_lab_close)

TEST(test_rank_logs_are_of_ranks_with_something_to_say)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    struct rf_fault fault = rf_fault_make(0, 1, RF_ERR_PEER, "died");
    json_t *list = rf_rank_logs_json(attempt, "one", false);
    ck_assert_uint_eq(json_array_size(list), 0);
    json_decref(list);
    rf_rank_log_add(&attempt->logs[0], "filling", "hello");
    rf_attempt_add_fault(attempt, &fault);
    list = rf_rank_logs_json(attempt, "one", false);
    ck_assert_uint_eq(json_array_size(list), 2);
    ck_assert_str_eq(json_text_at(list, "[0]"), "logs/one/rank-0.log");
    json_decref(list);
    list = rf_rank_logs_json(attempt, "one", true);
    ck_assert_uint_eq(json_array_size(list), rf_attempt_ranks(attempt));
    json_decref(list);
}

TEST(test_rank_logs_of_repeats_have_files_of_their_own)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    AUTO_FREE char *file;
    attempt->n_repeats = 3;
    attempt->repeat = 2;
    file = rf_rank_logs_file(attempt, "one", 1, true);
    ck_assert_str_eq(file, "logs/one/repeat-2.rank-1.log");
    ck_assert_ptr_null(rf_rank_logs_file(attempt, "one", RF_NONE, true));
}

TEST(test_rank_logs_say_what_a_rank_did_and_wrote)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    struct rf_fault fault = rf_fault_make(0, 1, RF_ERR_PEER, "died");
    json_auto_t *record;
    char *text;
    const json_t *error;
    fault.phase = rf_xstrdup("closing");
    rf_rank_log_add(&attempt->logs[1], "filling", "hello");
    rf_attempt_add_fault(attempt, &fault);
    record = record_of(attempt, false);
    error = json_at(record, "errors[0]");
    ck_assert_str_eq(rf_result_text(error, NULL, "log"), "logs/one/rank-1.log");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "logs")), 1);
    text = rf_rank_logs_text(attempt, record, 1);
    assert_says(text, "scenario one, rank 1 on a, ");
    assert_says(text, ", run 0123, failed\n");
    assert_says(text, "\nwarm-up 0: ms 11.00, pack_ms ");
    assert_says(text, "\niteration 2: ms 14.00, pack_ms ");
    assert_says(text, ", received_bytes ");
    assert_says(text, "\nwhat went wrong:\nclosing: died\n");
    assert_says(text, "\nwhat it wrote:\nfilling:\n  hello\n");
    free(text);
    text = rf_rank_logs_text(attempt, record, 0);
    ck_assert_ptr_null(strstr(text, "what"));
    free(text);
}

/* A log is bounded, however long a scenario runs. */
TEST(test_rank_logs_leave_out_iterations_in_the_middle)
{
    AUTO(rf_attempt) *attempt = result_lab_attempt(0);
    json_t *record = record_of(attempt, true), *many = json_array();
    const json_t *list = json_object_get(record, "iterations");
    AUTO_FREE char *text;
    for (int i = 0; i < 1000; i++) {
        json_t *one = json_copy(json_array_get(list, 0));
        json_object_set_new(one, "index", json_integer(i));
        json_array_append_new(many, one);
    }
    json_object_set_new(record, "iterations", many);
    text = rf_rank_logs_text(attempt, record, 0);
    assert_says(text, "\niteration 99: ");
    assert_says(text, "\n(800 left out)\niteration 900: ");
    assert_says(text, "\niteration 999: ");
    json_decref(record);
}
