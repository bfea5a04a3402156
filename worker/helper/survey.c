/* A survey as a helper. See survey.h. */
#include "worker/helper/survey.h"

#include "common/mem.h"
#include "worker/helper/facts.h"

struct rf_helper *rf_survey_start(uv_loop_t *loop, char *const *environment,
                                  uint32_t limit_ms, rf_helper_done_fn done,
                                  void *data, struct rf_err *err)
{
    static const char *const arguments[] = {"--survey", NULL};
    static const struct rf_helper_words words = {
        .process = "the process that looks for devices and libraries, with the "
                   "environment of ranks,",
        .on_end = "check launch.env (LD_LIBRARY_PATH, LD_PRELOAD) and the "
                  "driver; its output is above",
        .work = "looking for devices and libraries",
        .on_limit = "does a driver hang? Try nvidia-smi"};
    const struct rf_helper_how how = {.arguments = arguments,
                                      .environment = environment,
                                      .answer = RF_MSG_HELLO,
                                      .limit_ms = limit_ms,
                                      .words = &words};
    return rf_helper_start(loop, &how, done, data, err);
}

static void make_hello(struct rf_msg *out, void *data)
{
    (void)data;
    rf_msg_init(out, RF_MSG_HELLO);
    rf_facts_collect(&out->hello);
    /* HELLO requires these; the agent has the right ones. */
    out->hello.node = 0;
    out->hello.control = rf_xstrdup("stdio");
}

int rf_survey_run(pid_t parent)
{
    return rf_helper_run(parent, make_hello, NULL);
}
