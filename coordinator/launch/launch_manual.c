/*
 * The launcher `manual`: starts nothing. The user gets the command to run on
 * the node (by hand, srun, kubectl, …), and the node joins over TCP with its
 * single-use key, which the command names by file, never by value.
 *
 * The key file has mode 0600 in the user's cache folder; stop() removes it.
 * There is no stream and no process to watch: the control connection is
 * everything, and on_exit only answers stop().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/launch/launch_internal.h"

struct manual {
    struct rf_launch base;
    uv_timer_t timer;
    char *key_file;
    char *command; /* without the key file */
    bool stopping;
};

static void closed_cb(uv_handle_t *handle)
{
    struct manual *manual = handle->data;
    manual->base.callbacks.on_exit(&manual->base, 0, NULL, manual->base.data);
}

static void say_cb(uv_timer_t *timer)
{
    struct manual *manual = timer->data;
    struct rf_launch *base = &manual->base;
    char *line;
    if (manual->stopping) {
        uv_close((uv_handle_t *)timer, closed_cb);
        return;
    }
    line = rf_xasprintf("run on this node: %s --key-file %s", manual->command,
                        manual->key_file);
    base->callbacks.on_note(base, line, base->data);
    free(line);
    base->callbacks.on_note(base,
                            "(if it cannot read that file: --key-file -, with "
                            "the file on standard input)",
                            base->data);
}

static enum rf_status make_folder(const char *path, struct rf_err *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST
               ? RF_OK
               : rf_err_errno(err, RF_ERR_LAUNCH, errno,
                              "cannot make a folder for key files, which "
                              "XDG_CACHE_HOME may name: %s",
                              path);
}

/* $XDG_CACHE_HOME/refit-coord or ~/.cache/refit-coord, created if missing; the
 * caller frees it. "/" and "" are no home folders. */
static enum rf_status key_folder(char **out, struct rf_err *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *folder = cache != NULL && cache[0] == '/' ? rf_xstrdup(cache)
                   : home == NULL || home[strspn(home, "/")] == '\0'
                       ? NULL
                       : rf_xasprintf("%s/.cache", home);
    char *path;
    enum rf_status status;
    if (folder == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "launcher manual needs a HOME other than /, or "
                          "XDG_CACHE_HOME, for its key files");
    }
    path = rf_xasprintf("%s/refit-coord", folder);
    status = make_folder(folder, err);
    RF_THEN(status, make_folder(path, err));
    free(folder);
    if (status == RF_OK) {
        *out = path;
    } else {
        free(path);
    }
    return status;
}

static enum rf_status write_key(const char *path, const char *key,
                                struct rf_err *err)
{
    char text[256];
    int length = snprintf(text, sizeof(text), "%s\n", key), fd;
    enum rf_status status = RF_OK;
    (void)unlink(path); /* left by a killed run */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
    }
    if (write(fd, text, (size_t)length) != length) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s: write", path);
    }
    if (close(fd) != 0 && status == RF_OK) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s: close", path);
    }
    if (status != RF_OK) {
        (void)unlink(path);
    }
    explicit_bzero(text, sizeof(text));
    return status;
}

static char *key_path(const char *folder, const char *identity)
{
    char *path = rf_xasprintf("%s/%s.key", folder, identity);
    for (char *at = path + strlen(folder) + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '-';
        }
    }
    return path;
}

static enum rf_status start(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err)
{
    const struct rf_launch_join *join = order->join;
    struct manual *manual;
    char *folder = NULL, *path, *wrap;
    enum rf_status status;
    if (join == NULL || join->address == NULL) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "launcher manual without an address to join");
    }
    RF_TRY(key_folder(&folder, err));
    path = key_path(folder, join->identity);
    free(folder);
    status = write_key(path, join->key, err);
    if (status != RF_OK) {
        free(path);
        return status;
    }
    manual = rf_xcalloc(1, sizeof(*manual));
    manual->base.callbacks = *callbacks;
    manual->base.data = data;
    manual->key_file = path;
    wrap = rf_wrap_prefix(order->settings, order->node->name);
    manual->command =
        rf_xasprintf("%s%s --connect %s --identity %s", wrap,
                     order->settings->worker, join->address, join->identity);
    free(wrap);
    uv_timer_init(loop, &manual->timer);
    manual->timer.data = manual;
    uv_timer_start(&manual->timer, say_cb, 0, 0);
    *out = &manual->base;
    return RF_OK;
}

static void stop(struct rf_launch *launch, bool force)
{
    struct manual *manual = rf_container_of(launch, struct manual, base);
    (void)force;
    if (!manual->stopping) {
        manual->stopping = true;
        (void)unlink(manual->key_file);
        uv_timer_start(&manual->timer, say_cb, 0, 0);
    }
}

static void destroy(struct rf_launch *launch)
{
    struct manual *manual = rf_container_of(launch, struct manual, base);
    free(manual->key_file);
    free(manual->command);
    free(manual);
}

const struct rf_launcher_ops rf_launcher_manual = {
    .name = "manual",
    .descriptors = 0,
    .connects = true,
    .by_hand = true,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};
