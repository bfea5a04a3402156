/* A survey as a helper. See survey.h. */
#include "worker/helper/survey.h"

#include "common/mem.h"
#include "worker/helper/facts.h"

struct rf_helper *rf_survey_start(uv_loop_t *loop,
                                  const struct rf_survey_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err)
{
    const char *arguments[2 * RF_SURVEY_UNTRIED_MAX + 2] = {"--survey"};
    size_t n = 1;
    static const struct rf_helper_words words = {
        .process = "the process that looks for devices and libraries, with the "
                   "environment of ranks,",
        .on_end = "check launch.env (LD_LIBRARY_PATH, LD_PRELOAD), the driver "
                  "and memory limits (`ulimit -v`, `ulimit -d`), which can "
                  "crash libraries on load; its output is above",
        .work = "looking for devices and libraries",
        .on_limit = "driver hung? Try nvidia-smi"};
    const struct rf_helper_how helper = {.arguments = arguments,
                                         .environment = how->environment,
                                         .answer = RF_MSG_HELLO,
                                         .limit_ms = how->limit_ms,
                                         .words = &words};
    for (size_t i = 0; i < how->untried->n; i++) {
        arguments[n++] = "--untried";
        arguments[n++] = how->untried->list[i];
    }
    return rf_helper_start(loop, &helper, done, data, err);
}

static void make_hello(struct rf_msg *out, void *data)
{
    rf_msg_init(out, RF_MSG_HELLO);
    rf_facts_collect(data, &out->hello);
    /* Required in HELLO; the agent sets the real values. */
    out->hello.node = 0;
    out->hello.control = rf_xstrdup("stdio");
}

int rf_survey_run(pid_t parent, const struct rf_texts *untried)
{
    return rf_helper_run(parent, make_hello, (void *)untried);
}
