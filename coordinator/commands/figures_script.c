/*
 * Running scripts/figures. See figures_script.h.
 *
 * Both documents go through unnamed files, so neither program waits for the
 * other to read. The script's messages go to our standard error.
 */
#include "coordinator/commands/figures_script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "common/store.h"
#include "coordinator/launch/program.h"
#include "coordinator/records/records_differ.h"
#include "coordinator/reports/report_json.h"

#define MOST_BYTES ((size_t)1 << 30) /* limit of an answer, pictures included */

/* --- Input of the script -------------------------------------------------- */

/* Rows and records side by side, with what identifies their refits, and the
 * folders of the runs. */
static json_t *document_of(const struct rf_result_set *set,
                           const struct rf_comparisons *comparison)
{
    json_t *out = rf_report_json(set), *records = json_array();
    const json_t *rows = json_object_get(out, "results");
    const json_t *runs = json_object_get(out, "runs");
    for (size_t i = 0, run = 0; i < set->n; i++) {
        json_t *record = set->files[i].result;
        json_t *settings =
            rf_refit_settings(json_object_get(record, "scenario"));
        json_array_append_new(records,
                              json_pack("{s:O, s:O, s:o?}", "row",
                                        json_array_get(rows, i), "record",
                                        record, "settings", settings));
        if (rf_report_begins_run(set, i)) {
            json_object_set_new(json_array_get(runs, run++), "folder",
                                json_string(set->files[i].folder));
        }
    }
    json_object_set_new(out, "records", records);
    json_object_del(out, "results");
    if (comparison != NULL) {
        json_object_set_new(out, "comparison", rf_comparisons_json(comparison));
    }
    return out;
}

/* An unnamed file that holds `text`, read from its start. */
static enum rf_status file_of(const char *text, int *out, struct rf_err *err)
{
    int fd = memfd_create("figures", MFD_CLOEXEC);
    if (fd < 0 || rf_write_all(fd, text, strlen(text)) != 0 ||
        lseek(fd, 0, SEEK_SET) != 0) {
        enum rf_status status =
            rf_err_errno(err, RF_ERR_IO, errno, "the document of the figures");
        rf_fd_close(&fd);
        return status;
    }
    *out = fd;
    return RF_OK;
}

/* --- The script ----------------------------------------------------------- */

/* Its path relative to this program: installed beside it, or in the source tree
 * of the build. REFIT_SHARE overrides both. */
static char *find_script(const char *self, struct rf_err *err)
{
    static const char *const places[] = {"../share/refit-coord", "..", "../.."};
    const int folder = (int)(strrchr(self, '/') - self);
    const char *own = getenv("REFIT_SHARE");
    for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
        char *path = own != NULL ? rf_xasprintf("%s/scripts/figures", own)
                                 : rf_xasprintf("%.*s/%s/scripts/figures",
                                                folder, self, places[i]);
        if (access(path, R_OK) == 0) {
            return path;
        }
        free(path);
    }
    rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "no figures: scripts/figures is not installed with %s; run `make "
        "install`, or set REFIT_SHARE to the folder that contains scripts/",
        self);
    return NULL;
}

struct ended {
    int64_t status;
    int signal;
};

static void exit_cb(uv_process_t *process, int64_t status, int signal)
{
    struct ended *ended = process->data;
    *ended = (struct ended){status, signal};
    uv_close((uv_handle_t *)process, NULL);
}

/* Runs the script and waits for its end. 0, or libuv's error. */
static int run_python(char **args, int in, int out, struct ended *ended)
{
    uv_stdio_container_t stdio[] = {
        {.flags = UV_INHERIT_FD, .data.fd = in},
        {.flags = UV_INHERIT_FD, .data.fd = out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    const uv_process_options_t options = {.file = args[0],
                                          .args = args,
                                          .exit_cb = exit_cb,
                                          .stdio = stdio,
                                          .stdio_count = 3};
    uv_process_t process = {.data = ended};
    uv_loop_t loop;
    int failed = uv_loop_init(&loop);
    if (failed != 0) {
        return failed;
    }
    failed = uv_spawn(&loop, &process, &options);
    if (failed != 0) {
        uv_close((uv_handle_t *)&process, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return failed;
}

/* The script's answer, or the reason that there is no readable one. */
static enum rf_status take_answer(int fd, const struct ended *ended,
                                  json_t **out, struct rf_err *err)
{
    json_t *answer = NULL;
    const char *error;
    if (lseek(fd, 0, SEEK_SET) != 0 ||
        rf_json_read(fd, "scripts/figures", MOST_BYTES, &answer, NULL) !=
            RF_OK) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "no figures: scripts/figures ended with %s %lld and "
                          "no answer; its message is above",
                          ended->signal != 0 ? "signal" : "exit status",
                          ended->signal != 0 ? (long long)ended->signal
                                             : (long long)ended->status);
    }
    error = json_string_value(json_object_get(answer, "error"));
    if (error != NULL) {
        enum rf_status status =
            rf_err_set(err, RF_ERR_UNSUPPORTED, "no figures: %s", error);
        json_decref(answer);
        return status;
    }
    *out = answer;
    return RF_OK;
}

static int start_script(char *self, char *script, const char *folder, int in,
                        int out, struct ended *ended)
{
    char python[] = "python3", coord[] = "--coord";
    char into[] = "--folder", here[] = "--inline";
    char *target = folder != NULL ? rf_xstrdup(folder) : NULL;
    char *args[] = {python, script, coord, self, target != NULL ? into : here,
                    target, NULL};
    int failed = run_python(args, in, out, ended);
    free(target);
    return failed;
}

static enum rf_status run_script(char *self, char *script, const char *folder,
                                 int in, json_t **out, struct rf_err *err)
{
    struct ended ended = {0};
    int failed, answer;
    enum rf_status status;
    RF_TRY(file_of("", &answer, err));
    failed = start_script(self, script, folder, in, answer, &ended);
    status =
        failed != 0
            ? rf_err_set(err, RF_ERR_UNSUPPORTED, "no figures: python3%s: %s%s",
                         rf_spawn_limits(-failed), uv_strerror(failed),
                         failed == UV_ENOENT
                             ? "; install the packages python3 and "
                               "python3-matplotlib"
                             : "")
            : take_answer(answer, &ended, out, err);
    close(answer);
    return status;
}

enum rf_status rf_figures_script_draw(const struct rf_result_set *set,
                                      const struct rf_comparisons *comparison,
                                      const char *folder, json_t **out,
                                      struct rf_err *err)
{
    char *self = rf_program_self(), *script = NULL, *text = NULL;
    json_t *document;
    enum rf_status status = RF_ERR_UNSUPPORTED;
    int in;
    if (self == NULL) {
        return rf_err_set(err, status, "no figures: /proc is not mounted");
    }
    script = find_script(self, err);
    if (script == NULL) {
        goto free_self;
    }
    document = document_of(set, comparison);
    text = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    status = text != NULL ? file_of(text, &in, err)
                          : rf_err_set(err, RF_ERR_NOMEM, "figures: no memory");
    if (status == RF_OK) {
        status = run_script(self, script, folder, in, out, err);
        close(in);
    }
    free(text);
    free(script);
free_self:
    free(self);
    return status;
}
