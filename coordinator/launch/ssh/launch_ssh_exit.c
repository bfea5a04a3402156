/* How a command on a channel ended, as reported by the server: an exit status
 * or a signal. Without a report it stays unknown. */
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

static void status_cb(ssh_session session, ssh_channel channel, int status,
                      void *data)
{
    struct rf_ssh_exit *end = data;
    (void)session;
    (void)channel;
    end->known = true;
    end->status = status;
}

static void signal_cb(ssh_session session, ssh_channel channel,
                      const char *signal, int core, const char *message,
                      const char *language, void *data)
{
    struct rf_ssh_exit *end = data;
    (void)session;
    (void)channel;
    (void)core;
    (void)message;
    (void)language;
    end->known = true;
    end->status = -1;
    free(end->signal);
    end->signal = rf_xstrdup(signal != NULL ? signal : "unknown");
}

void rf_ssh_exit_watch(struct rf_ssh_exit *end, ssh_channel channel)
{
    *end = (struct rf_ssh_exit){
        .status = -1,
        .callbacks = {.userdata = end,
                      .channel_exit_status_function = status_cb,
                      .channel_exit_signal_function = signal_cb}};
    ssh_callbacks_init(&end->callbacks);
    ssh_set_channel_callbacks(channel, &end->callbacks);
}

void rf_ssh_exit_unwatch(struct rf_ssh_exit *end, ssh_channel channel)
{
    ssh_remove_channel_callbacks(channel, &end->callbacks);
}
