/* Errors and channels of a libssh session. */
#include <string.h>

#include "coordinator/launch/ssh/launch_ssh.h"

/* libssh has no call for this; a refused option leaves a distinct text. */
void rf_ssh_forget(ssh_session session)
{
    (void)ssh_options_set(session, SSH_OPTIONS_HOST, NULL);
}

const char *rf_ssh_reason(ssh_session session)
{
    const char *text = ssh_get_error(session);
    return text[0] == '\0' || strstr(text, "ssh_options_set") != NULL
               ? "no reason given"
               : text;
}

enum rf_status rf_ssh_open_channel(ssh_session session, ssh_channel *out,
                                   struct rf_err *err)
{
    ssh_channel channel = ssh_channel_new(session);
    rf_ssh_forget(session);
    if (channel != NULL && ssh_channel_open_session(channel) == SSH_OK) {
        *out = channel;
        return RF_OK;
    }
    rf_err_set(err, RF_ERR_LAUNCH, "the server opens no session: %s%s",
               rf_ssh_reason(session),
               ssh_is_connected(session)
                   ? " (MaxSessions of its sshd_config limits them)"
                   : "");
    if (channel != NULL) {
        ssh_channel_free(channel);
    }
    return RF_ERR_LAUNCH;
}
