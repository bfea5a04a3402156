/*
 * The carrier of methods that need none: every op is a copy inside the node, so
 * there is nothing to send, nothing to wait for and nothing to close. See
 * engine.h.
 */
#include "transport/engine/engine.h"

static enum rf_status none_prepare(struct rf_engine *engine, void **carrier,
                                   uint16_t *port, struct rf_err *err)
{
    (void)engine;
    (void)port;
    (void)err;
    *carrier = NULL;
    return RF_OK;
}

static enum rf_status none_begin(void *carrier, struct rf_err *err)
{
    (void)carrier;
    (void)err;
    return RF_OK;
}

static void none_action(void *carrier, uint32_t action)
{
    (void)carrier;
    (void)action;
}

static enum rf_status none_work(void *carrier, bool *worked, struct rf_err *err)
{
    (void)carrier;
    (void)worked;
    (void)err;
    return RF_OK;
}

static bool none_idle(void *carrier)
{
    (void)carrier;
    return true;
}

static int none_nap_ms(void *carrier)
{
    (void)carrier;
    return RF_ENGINE_NAP_MS;
}

static void none_close(void *carrier)
{
    (void)carrier;
}

const struct rf_carrier_ops rf_carrier_none = {
    .prepare = none_prepare,
    .open = none_begin,
    .start = none_begin,
    .send = none_action,
    .admit = none_action,
    .work = none_work,
    .idle = none_idle,
    .nap_ms = none_nap_ms,
    .close = none_close,
};
