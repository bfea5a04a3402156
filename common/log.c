/* Log lines. One write() a line, so that lines of several processes on one
 * stderr do not mix. The sink is the only mutable global state of the code. */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

static struct {
    enum rf_log_level level;
    char prefix[64];
    void (*sink)(enum rf_log_level, const char *, void *);
    void *data;
} log_state = {.level = RF_LOG_INFO};

static const char *const level_names[] = {"error: ", "warning: ", "",
                                          "debug: ", "trace: "};

void rf_log_init(enum rf_log_level level, const char *prefix)
{
    log_state.level = level;
    snprintf(log_state.prefix, sizeof(log_state.prefix), "%s",
             prefix != NULL ? prefix : "");
}

enum rf_log_level rf_log_level(void)
{
    return log_state.level;
}

void rf_log_set_sink(void (*sink)(enum rf_log_level, const char *, void *),
                     void *data)
{
    log_state.sink = sink;
    log_state.data = data;
}

void rf_log(enum rf_log_level level, const char *fmt, ...)
{
    char line[2048];
    va_list args;
    int len;

    if (level > log_state.level) {
        return;
    }
    len = snprintf(line, sizeof(line), "%s%s", log_state.prefix,
                   level_names[level]);
    va_start(args, fmt);
    len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, args);
    va_end(args);
    rf_text_fit(line, sizeof(line) - 1, len); /* room for the newline */
    len = (int)strlen(line);
    rf_text_clean(line, (size_t)len);
    if (log_state.sink != NULL) {
        log_state.sink(level, line, log_state.data);
        return;
    }
    line[len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)len + 1) < 0) {
        return; /* nowhere left to report it */
    }
}
