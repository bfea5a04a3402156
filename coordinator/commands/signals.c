/* Signals that end a command. See signals.h. */
#include "coordinator/commands/signals.h"

#include <signal.h>

static const int numbers[RF_N_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* The parent may have set a signal to be ignored, as nohup does, and as shells
 * do for background jobs. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void rf_signals_start(struct rf_signals *signals, uv_loop_t *loop,
                      uv_signal_cb on_signal, void *data)
{
    for (int i = 0; i < RF_N_SIGNALS; i++) {
        uv_signal_init(loop, &signals->handles[i]);
        signals->handles[i].data = data;
        if (!is_ignored(numbers[i])) {
            uv_signal_start(&signals->handles[i], on_signal, numbers[i]);
        }
    }
}

void rf_signals_close(struct rf_signals *signals)
{
    for (int i = 0; i < RF_N_SIGNALS; i++) {
        uv_close((uv_handle_t *)&signals->handles[i], NULL);
    }
}
