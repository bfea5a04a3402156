/*
 * SFTP with a node, and diagnosis of its failures.
 *
 * For most failures a server says only "Failure", so common causes are checked
 * afterwards: a path component that is no folder, a read-only or full file
 * system. A subsystem that is an external program is started by the login
 * shell, whose start-up files may print into its stream or end it; running a
 * no-op command shows that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define SPACE_BYTES (256u << 10) /* less free space counts as full */
#define SHELL_MS 5000            /* for a no-op command */

/* --- Opening -------------------------------------------------------------- */

/* Reads a command's output, or its beginning; false: no output. */
static bool read_output(ssh_channel channel, char *out, size_t size)
{
    const int64_t end_ns = rf_now_ns() + SHELL_MS * RF_NS_PER_MS;
    size_t used = 0;
    int64_t left_ms = SHELL_MS;
    int got;
    do {
        got = ssh_channel_read_timeout(
            channel, out + used, (uint32_t)(size - 1 - used), 0, (int)left_ms);
        used += got > 0 ? (size_t)got : 0;
        left_ms = (end_ns - rf_now_ns()) / RF_NS_PER_MS;
    } while (got > 0 && used < size - 1 && left_ms > 0);
    out[used] = '\0';
    return used > 0;
}

/* The first non-empty line. */
static const char *first_words(char *text)
{
    text += strspn(text, "\r\n\t ");
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

/* Finds what is wrong with the shell that starts commands. */
static void try_shell(ssh_session session, char *out, size_t size)
{
    static const char files[] =
        "start-up files of the login shell (.bashrc, .cshrc)";
    ssh_channel channel = NULL;
    char words[128];
    int status;
    snprintf(out, size, "do %s print anything?", files);
    if (rf_ssh_open_channel(session, &channel, NULL) != RF_OK) {
        return;
    }
    if (ssh_channel_request_exec(channel, "exit 0") == SSH_OK) {
        if (read_output(channel, words, sizeof(words))) {
            snprintf(out, size, "%s print \"%s\", which breaks SFTP", files,
                     first_words(words));
        } else if ((status = ssh_channel_get_exit_status(channel)) > 0) {
            snprintf(out, size, "%s end it with status %d", files, status);
        }
    }
    ssh_channel_free(channel);
}

static enum rf_status no_sftp(ssh_session session, bool started,
                              struct rf_err *err)
{
    char reason[300], shell[320] = "";
    snprintf(reason, sizeof(reason), "%s", rf_ssh_reason(session));
    if (started) {
        try_shell(session, shell, sizeof(shell));
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "the server offers no SFTP: %s%s%s; or copy the worker "
                      "there yourself and give its path in launch.worker",
                      reason, started ? "; " : "", shell);
}

enum rf_status rf_ssh_sftp_open(ssh_session session, struct rf_ssh_sftp *out,
                                struct rf_err *err)
{
    out->session = session;
    RF_TRY(rf_ssh_open_channel(session, &out->channel, err));
    rf_ssh_forget(session);
    if (ssh_channel_request_sftp(out->channel) != SSH_OK) {
        return no_sftp(session, false, err);
    }
    out->sftp = sftp_new_channel(session, out->channel);
    return out->sftp != NULL && sftp_init(out->sftp) == SSH_OK
               ? RF_OK
               : no_sftp(session, true, err);
}

void rf_ssh_sftp_close(struct rf_ssh_sftp *sftp)
{
    if (sftp->sftp != NULL) {
        sftp_free(sftp->sftp); /* frees its channel, too */
    } else if (sftp->channel != NULL) {
        ssh_channel_free(sftp->channel);
    }
    *sftp = (struct rf_ssh_sftp){0};
}

/* --- Failures ------------------------------------------------------------- */

/* Whether something at `level` prevents a folder there, as `why` says. *there:
 * it is a folder. */
static bool is_in_the_way(const struct rf_ssh_sftp *sftp, const char *level,
                          bool *there, char *why, size_t size)
{
    sftp_attributes found = sftp_stat(sftp->sftp, level);
    char *link = found == NULL ? sftp_readlink(sftp->sftp, level) : NULL;
    const bool other =
        found != NULL && found->type != SSH_FILEXFER_TYPE_DIRECTORY;
    *there = found != NULL && !other;
    if (other) {
        snprintf(why, size, "%s exists and is not a folder", level);
    } else if (link != NULL) {
        snprintf(why, size, "%s is a symbolic link to %s, which does not exist",
                 level, link);
    }
    sftp_attributes_free(found);
    ssh_string_free_char(link);
    return other || link != NULL;
}

/* Whether the file system of `folder` takes no more: it is read-only, full or
 * out of inodes, as `why` says. */
static bool is_full(const struct rf_ssh_sftp *sftp, const char *folder,
                    char *why, size_t size)
{
    sftp_statvfs_t found =
        sftp_extension_supported(sftp->sftp, "statvfs@openssh.com", "2")
            ? sftp_statvfs(sftp->sftp, folder)
            : NULL;
    const char *state = NULL;
    if (found == NULL) {
        return false;
    }
    if ((found->f_flag & SSH_FXE_STATVFS_ST_RDONLY) != 0) {
        state = "is read-only";
    } else if (found->f_bavail * found->f_frsize < SPACE_BYTES) {
        state = "is full (df)";
    } else if (found->f_files > 0 && found->f_favail == 0) {
        state = "has no inodes left (df -i)";
    }
    if (state != NULL) {
        snprintf(why, size, "the file system of %s %s", folder, state);
    }
    sftp_statvfs_free(found);
    return state != NULL;
}

/* Checks every level of the path that is a folder, or should be. */
static bool find_obstacle(const struct rf_ssh_sftp *sftp, const char *path,
                          char *why, size_t size)
{
    char *folder = rf_xstrdup("/");
    bool found = false, there = true;
    for (const char *at = strchr(path + 1, '/'); at != NULL && there && !found;
         at = strchr(at + 1, '/')) {
        char *level = rf_xasprintf("%.*s", (int)(at - path), path);
        found = is_in_the_way(sftp, level, &there, why, size);
        if (there) {
            free(folder);
            folder = level;
        } else {
            free(level);
        }
    }
    found = found || is_full(sftp, folder, why, size);
    free(folder);
    return found;
}

enum rf_status rf_ssh_sftp_failed(const struct rf_ssh_sftp *sftp, int error,
                                  const char *what, const char *path,
                                  struct rf_err *err)
{
    static const char *const names[] = {
        [SSH_FX_NO_SUCH_FILE] = "no such file or folder",
        [SSH_FX_PERMISSION_DENIED] = "permission denied",
        [SSH_FX_OP_UNSUPPORTED] = "the server does not support it",
    };
    const size_t length = strlen(path);
    char why[600];
    if (!ssh_is_connected(sftp->session) ||
        !ssh_channel_is_open(sftp->channel)) {
        snprintf(why, sizeof(why), "the connection ended");
    } else if (!find_obstacle(sftp, path, why, sizeof(why))) {
        snprintf(why, sizeof(why), "%s",
                 error >= 0 && (size_t)error < RF_ARRAY_SIZE(names) &&
                         names[error] != NULL
                     ? names[error]
                     : "the server gives no reason; quota exceeded?");
    }
    return rf_err_set(err, RF_ERR_LAUNCH, "cannot %s %.*s: %s", what,
                      (int)(length - (path[length - 1] == '/' ? 1 : 0)), path,
                      why);
}
