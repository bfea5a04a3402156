/* Waiting for other ranks while UCX connects. */
#include "common/clock.h"
#include "tests/unit/unit.h"
#include "ucx/endpoint.h"

static struct rf_ucx_library *library;
static ucp_worker_h worker;
static atomic_bool aborted;
static struct rf_method_env env = {.abort = &aborted};

static void set_up(void)
{
    struct rf_err err;
    assert_ok(rf_ucx_library_take(RF_UCX_WIRE, 1, &library, &err), err);
    assert_ok(rf_ucx_worker_open(library, &worker, &err), err);
    env.deadline_ns = rf_now_ns() + 1000 * RF_NS_PER_S;
}

static void tear_down(void)
{
    ucp_worker_destroy(worker);
    rf_ucx_library_give(library);
}

FIXTURE(set_up, tear_down)

/* One turn of a wait for rank 3 that began `seconds` ago. */
static enum rf_status wait_since(int64_t seconds, const struct rf_err *broken,
                                 struct rf_err *err)
{
    return rf_ucx_wait(&env, worker, broken, 3,
                       rf_now_ns() - seconds * RF_NS_PER_S, err);
}

TEST(test_only_a_lost_rank_makes_one_ask_about_a_firewall)
{
    static const struct rf_err broken[] = {{RF_ERR_PEER, "UCX lost rank 3"},
                                           {RF_ERR_PROTOCOL, "out of turn"},
                                           {RF_ERR_IO, "UCX: no memory"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(broken); i++) {
        struct rf_err err;
        assert_fails(wait_since(0, &broken[i], &err), broken[i].status, err,
                     broken[i].text);
        ck_assert_int_eq(strstr(err.text, "firewall") != NULL,
                         broken[i].status == RF_ERR_PEER);
    }
}

TEST(test_a_rank_without_an_answer_is_named)
{
    static const struct rf_err fine = {RF_OK, ""};
    struct rf_err err;
    assert_ok(wait_since(25, &fine, &err), err);
    assert_fails(wait_since(31, &fine, &err), RF_ERR_TIMEOUT, err,
                 "connection to rank 3 timed out");
    assert_says(err.text, "firewall");
    env.deadline_ns = rf_now_ns() - 1;
    assert_fails(wait_since(0, &fine, &err), RF_ERR_TIMEOUT, err, "rank 3");
}
