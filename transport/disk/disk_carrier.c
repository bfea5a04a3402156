/*
 * The carrier of ops through files: opening, names, dispatch. disk_write.c and
 * disk_read.c move the bytes. See disk_carrier.h.
 *
 * Files are created exclusively with mode 0600. If all readers of a file are on
 * its node, its name is removed as soon as they have it open, so that nothing
 * is left behind; otherwise at the end, by every rank of the node for all of
 * them. If ranks are killed, the agent removes their files; if the agent is
 * killed, the next ranks on its node that open the folder.
 *
 * Failures: a folder that is not writable, not shared or full, and a file of
 * another user, are RF_ERR_IO with the path; the caller then aborts and closes,
 * which removes every file.
 */
#include "transport/disk/disk_carrier.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/folders.h"
#include "common/mem.h"

/* --- names ---------------------------------------------------------------- */

static enum rf_status path_of(const struct rf_disk_files *files, uint32_t rank,
                              bool ledger, char out[RF_DISK_PATH_SIZE],
                              struct rf_err *err)
{
    return rf_disk_path(files->engine->env->plan->spec->disk_folder,
                        files->peers[rank].label, rank,
                        ledger ? RF_DISK_LEDGER : RF_DISK_DATA, out)
               ? RF_OK
               : rf_err_set(err, RF_ERR_IO,
                            "disk.folder: the name is too long for its files");
}

static void remove_names(const struct rf_disk_files *files, uint32_t rank)
{
    rf_disk_remove(files->engine->env->plan->spec->disk_folder, files->label,
                   rank);
}

static enum rf_status create_file(struct rf_disk_files *files, bool ledger,
                                  int *fd, struct rf_err *err)
{
    uint32_t rank = files->engine->env->rank;
    char path[RF_DISK_PATH_SIZE];
    RF_TRY(path_of(files, rank, ledger, path, err));
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*fd < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "create %s", path);
    }
    return RF_OK;
}

static enum rf_status open_file(struct rf_disk_files *files, uint32_t rank,
                                bool ledger, struct rf_err *err)
{
    struct rf_disk_peer *peer = &files->peers[rank];
    int *fd = ledger ? &peer->ledger : &peer->data;
    char path[RF_DISK_PATH_SIZE], whose[RF_FOLDERS_WHOSE_SIZE] = "";
    RF_TRY(path_of(files, rank, ledger, path, err));
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*fd >= 0) {
        return RF_OK;
    }
    if (errno == ENOENT) {
        return rf_err_set(
            err, RF_ERR_ABORTED,
            "rank %" PRIu32
            " aborted and removed its files, or %s is not shared by all nodes",
            rank, files->engine->env->plan->spec->disk_folder);
    }
    if (errno == EACCES) {
        rf_folders_whose(path, whose);
    }
    return rf_err_errno(err, RF_ERR_IO, errno, "open %s of rank %" PRIu32 "%s",
                        path, rank, whose);
}

enum rf_status rf_disk_reopen(struct rf_disk_files *files, uint32_t rank,
                              bool ledger, struct rf_err *err)
{
    struct rf_disk_peer *peer = &files->peers[rank];
    close(ledger ? peer->ledger : peer->data);
    return open_file(files, rank, ledger, err);
}

/* --- opening -------------------------------------------------------------- */

static bool is_near(const struct rf_disk_files *files, uint32_t rank)
{
    return files->engine->flow->slots[rank] != RF_NONE;
}

bool rf_disk_holds(const struct rf_disk_files *files, const struct rf_op *op)
{
    const size_t index = (size_t)(op - files->engine->env->schedule->ops);
    return rf_op_reads_held(op) && files->coders[index].codec->source_view;
}

/* Finds the image's ranges, the ops to read from other nodes, and whether other
 * nodes read from us. */
static void plan_files(struct rf_disk_files *files)
{
    const struct rf_engine *engine = files->engine;
    const struct rf_schedule *schedule = engine->env->schedule;
    size_t cap = 0, n = 0;
    files->coders = rf_xcalloc(schedule->n_ops, sizeof(*files->coders));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        rf_coder_of(op, engine->env->codec, &files->coders[i]);
        if (op->src == engine->env->rank && !is_near(files, op->dst)) {
            files->far_readers = true;
        }
        if (op->dst == engine->env->rank && !is_near(files, op->src)) {
            RF_PUSH(files->far, n, cap, engine->flow->of_op[i].recv);
        }
    }
    files->n_far = (uint32_t)n;
    files->waiting = rf_xcalloc(n, sizeof(*files->waiting));
    rf_disk_plan_image(files);
}

static enum rf_status prepare(struct rf_engine *engine, void **carrier,
                              uint16_t *port, struct rf_err *err)
{
    struct rf_disk_files *files = rf_xcalloc(1, sizeof(*files));
    uint32_t n_ranks = engine->env->plan->world->n_ranks;
    uint32_t n_actions = engine->flow->n_actions;
    (void)port;
    files->engine = engine;
    *carrier = files;
    files->peers = rf_xcalloc(n_ranks, sizeof(*files->peers));
    files->named = rf_xcalloc(n_ranks, sizeof(*files->named));
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        files->peers[rank].data = files->peers[rank].ledger = -1;
    }
    plan_files(files);
    files->puts = rf_xcalloc(n_actions, sizeof(*files->puts));
    files->unsynced = rf_xcalloc(n_actions, sizeof(*files->unsynced));
    files->gets = rf_xcalloc(n_actions, sizeof(*files->gets));
    files->stage = rf_calloc(1, RF_DISK_BLOCK);
    if (files->stage == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "buffer for files");
    }
    return rf_disk_label(engine->env->data_key, getppid(), files->label)
               ? RF_OK
               : rf_err_set(err, RF_ERR_INTERNAL, "no digest");
}

/* Barrier of all ranks; exchanges the labels of their files. */
static enum rf_status meet(struct rf_disk_files *files, struct rf_err *err)
{
    const struct rf_method_env *env = files->engine->env;
    const uint32_t n_ranks = env->plan->world->n_ranks;
    char(*all)[RF_DISK_LABEL_SIZE] = rf_xcalloc(n_ranks, sizeof(*all));
    enum rf_status status = rf_share_all(env, "file name", files->label,
                                         sizeof(files->label), all, err);
    for (uint32_t rank = 0; status == RF_OK && rank < n_ranks; rank++) {
        char *label = files->peers[rank].label;
        snprintf(label, sizeof(all[rank]), "%.*s", RF_DISK_LABEL_SIZE - 1,
                 all[rank]);
        if (!rf_disk_label_is_good(label)) {
            status =
                rf_err_set(err, RF_ERR_PROTOCOL,
                           "rank %" PRIu32 " sent an invalid file name", rank);
        }
    }
    free(all);
    return status;
}

static enum rf_status open_peers(struct rf_disk_files *files,
                                 struct rf_err *err)
{
    const struct rf_method_env *env = files->engine->env;
    const struct rf_schedule *schedule = env->schedule;
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < schedule->n_ops && status == RF_OK; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->dst == env->rank && files->peers[op->src].data < 0) {
            status = open_file(files, op->src, false, err);
            RF_THEN(status, open_file(files, op->src, true, err));
        }
    }
    return status;
}

static enum rf_status open_files(void *carrier, struct rf_err *err)
{
    struct rf_disk_files *files = carrier;
    const struct rf_method_env *env = files->engine->env;
    struct rf_disk_peer *own = &files->peers[env->rank];
    enum rf_status status;
    for (uint32_t rank = 0; rank < env->plan->world->n_ranks; rank++) {
        files->named[rank] = is_near(files, rank);
    }
    memcpy(own->label, files->label, sizeof(own->label));
    status = create_file(files, false, &own->data, err);
    RF_THEN(status, create_file(files, true, &own->ledger, err));
    RF_THEN(status, meet(files, err));
    RF_THEN(status, open_peers(files, err));
    RF_THEN(status, meet(files, err));
    RF_THEN(status, rf_disk_syncer_start(&files->syncer, err));
    if (status == RF_OK && !files->far_readers) {
        remove_names(files, env->rank);
    }
    return status;
}

static void close_files(void *carrier)
{
    struct rf_disk_files *files = carrier;
    uint32_t n_ranks;
    if (files == NULL) {
        return;
    }
    rf_disk_syncer_stop(&files->syncer);
    n_ranks = files->engine->env->plan->world->n_ranks;
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        if (files->named[rank]) {
            remove_names(files, rank);
        }
        rf_fd_close(&files->peers[rank].data);
        rf_fd_close(&files->peers[rank].ledger);
    }
    free(files->peers);
    free(files->named);
    free(files->coders);
    free(files->ranges);
    free(files->puts);
    free(files->unsynced);
    free(files->gets);
    free(files->waiting);
    free(files->far);
    free(files->stage);
    free(files);
}

/* --- an iteration --------------------------------------------------------- */

static enum rf_status start(void *carrier, struct rf_err *err)
{
    struct rf_disk_files *files = carrier;
    (void)err;
    files->range_at = 0;
    files->range_done = 0;
    files->packed_end = rf_align_up(files->image_end, RF_DISK_BLOCK);
    files->n_puts = files->put_at = 0;
    files->put_done = 0;
    files->n_unsynced = files->n_syncing = 0;
    files->image_written = files->image_synced = false;
    files->gets_in = files->gets_out = files->get_done = 0;
    files->n_waiting = files->n_far;
    if (files->n_far > 0) {
        memcpy(files->waiting, files->far, files->n_far * sizeof(*files->far));
    }
    return RF_OK;
}

static void send_action(void *carrier, uint32_t action)
{
    struct rf_disk_files *files = carrier;
    files->puts[files->n_puts++] = action;
}

static void admit_action(void *carrier, uint32_t action)
{
    struct rf_disk_files *files = carrier;
    files->gets[files->gets_in++ % files->engine->flow->n_actions] = action;
}

static enum rf_status work(void *carrier, bool *worked, struct rf_err *err)
{
    struct rf_disk_files *files = carrier;
    enum rf_status status = rf_disk_write(files, worked, err);
    return status == RF_OK ? rf_disk_read(files, worked, err) : status;
}

static bool idle(void *carrier)
{
    const struct rf_disk_files *files = carrier;
    return !files->syncing;
}

static int nap_ms(void *carrier)
{
    const struct rf_disk_files *files = carrier;
    return files->n_waiting > 0 || files->syncing ? 1 : RF_ENGINE_NAP_MS;
}

const struct rf_carrier_ops rf_carrier_files = {
    .prepare = prepare,
    .open = open_files,
    .start = start,
    .send = send_action,
    .admit = admit_action,
    .work = work,
    .idle = idle,
    .nap_ms = nap_ms,
    .close = close_files,
};
