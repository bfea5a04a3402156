/*
 * Export. See export.h.
 *
 * Ranks write disjoint ranges of the same files with pwrite, on write-only
 * descriptors: a network file system then sends just those bytes. Of ranks that
 * hold the same box, the first writes it. Everything is synced before the files
 * are renamed.
 */
#include "worker/rank/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "worker/content/staging.h"
#include "worker/rank/export_files.h"

struct exporting {
    const struct rf_rank_export_job *job;
    const struct rf_method_env *env; /* the job's */
    struct rf_export *export;
    struct rf_export_files files;
    int *fds; /* by file */
    atomic_ullong written;
};

static bool is_first(const struct rf_method_env *env)
{
    return env->plan->world->rank_of[RF_INFER][0] == env->rank;
}

/* --- The pieces of each rank ---------------------------------------------- */

static enum rf_status open_file(struct exporting *e, uint32_t i,
                                struct rf_err *err)
{
    char path[RF_DISK_PATH_SIZE];
    RF_TRY(rf_export_files_path(&e->files, i, path, err));
    e->fds[i] = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return e->fds[i] >= 0
               ? RF_OK
               : rf_err_errno(err, RF_ERR_IO, errno,
                              "%s, created by the first inference rank: do all "
                              "inference nodes share the folder?",
                              path);
}

static enum rf_status write_at(int fd, const char *file, const uint8_t *from,
                               uint64_t bytes, uint64_t at, struct rf_err *err)
{
    while (bytes > 0) {
        ssize_t put = pwrite(fd, from, bytes, (off_t)at);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return rf_err_errno(err, RF_ERR_IO, errno, "%s: write", file);
        }
        from += put;
        at += (uint64_t)put;
        bytes -= (uint64_t)put;
    }
    return RF_OK;
}

static enum rf_status write_run(const struct rf_staged_run *run,
                                unsigned thread, void *data, struct rf_err *err)
{
    struct exporting *e = data;
    const struct rf_export_place to =
        rf_export_place_of(e->export, e->env->plan, run->span.family,
                           run->span.layer_index, run->span.expert);
    (void)thread;
    RF_TRY(write_at(e->fds[to.file], e->export->files[to.file].name, run->at,
                    run->bytes, to.offset + run->span.first * run->item, err));
    atomic_fetch_add(&e->written, run->bytes);
    return RF_OK;
}

/* Of all ranks with the scale of a tensor, that with its first element writes
 * it. */
static bool is_first_of_tensor(const struct rf_quantize_matrix *matrix)
{
    return matrix->box.start[RF_DIM_TENSOR] == 0 &&
           matrix->box.start[RF_DIM_TENSOR + 1] == 0;
}

/* Whether this rank writes piece `index` of the job's arena. */
static bool writes(const struct exporting *e, const struct rf_content_job *job,
                   uint32_t index)
{
    const struct rf_plan *plan = e->env->plan;
    const struct rf_piece *pieces =
        rf_plan_layout(plan, RF_INFER, e->env->rank)->pieces;
    const struct rf_quantize_matrix *matrix;
    const struct rf_quant_format *format;
    if (job->results == NULL) {
        return rf_export_writes(plan, e->env->rank, &pieces[index]);
    }
    format = rf_plan_converted(plan, e->env->rank)->format;
    matrix = &job->results->matrices[index / format->n_parts];
    return rf_export_writes(plan, e->env->rank, &pieces[matrix->source]) &&
           (format->parts[index % format->n_parts].rows > 0 ||
            is_first_of_tensor(matrix));
}

/* Whether a block of what arrived is replaced by results. */
static bool is_replaced(const struct exporting *e,
                        const struct rf_content_job *job,
                        const struct rf_block *block)
{
    const struct rf_plan *plan = e->env->plan;
    const struct rf_piece *piece =
        &rf_content_layout(job)->pieces[block->piece];
    return rf_plan_converted(plan, e->env->rank) != NULL &&
           job->results == NULL &&
           rf_family_converts(&plan->model->families[piece->family],
                              (uint32_t)block->box.start[RF_DIM_LAYER],
                              (uint32_t)block->box.start[RF_DIM_EXPERT]);
}

/* Moves the blocks that this rank writes to the front; returns their number. */
static size_t keep_own(const struct exporting *e,
                       const struct rf_content_job *job,
                       struct rf_block *blocks, size_t n)
{
    size_t kept = 0;
    uint32_t last = RF_NONE;
    bool own = false;
    for (size_t i = 0; i < n; i++) {
        if (blocks[i].piece != last) {
            last = blocks[i].piece;
            own = writes(e, job, last);
        }
        if (own && !is_replaced(e, job, &blocks[i])) {
            blocks[kept++] = blocks[i];
        }
    }
    return kept;
}

static enum rf_status sync_files(const struct exporting *e, struct rf_err *err)
{
    for (uint32_t i = 0; i < e->export->n_files; i++) {
        if (fsync(e->fds[i]) != 0) {
            return rf_err_errno(err, RF_ERR_IO, errno, "%s: sync",
                                e->export->files[i].name);
        }
    }
    return RF_OK;
}

/* Writes what the job's arena has. */
static enum rf_status write_blocks(struct exporting *e,
                                   const struct rf_content_job *job,
                                   struct rf_err *err)
{
    const struct rf_staging staging = {.job = job,
                                       .memory = e->env->memory,
                                       .way = RF_STAGE_OUT,
                                       .threads = RF_READ_THREADS,
                                       .abort = e->env->abort,
                                       .work = write_run,
                                       .data = e};
    size_t n = 0;
    struct rf_block *blocks = rf_blocks_of(job, &n);
    enum rf_status status = RF_OK;
    n = keep_own(e, job, blocks, n);
    for (uint32_t i = 0; status == RF_OK && n > 0 && i < e->export->n_files;
         i++) {
        status = e->fds[i] < 0 ? open_file(e, i, err) : RF_OK;
    }
    RF_THEN(status, rf_staging_run(&staging, blocks, n, err));
    free(blocks);
    return status;
}

static enum rf_status write_own(struct exporting *e, struct rf_err *err)
{
    enum rf_status status = write_blocks(e, &e->job->arrived, err);
    if (status == RF_OK && e->job->converted.results != NULL) {
        status = write_blocks(e, &e->job->converted, err);
    }
    if (status == RF_OK && e->fds[0] >= 0) {
        status = sync_files(e, err);
    }
    return status;
}

/* --- The step ------------------------------------------------------------- */

/* Barrier; the first inference rank shares the files' label. */
static enum rf_status meet(struct exporting *e, struct rf_err *err)
{
    const struct rf_world *world = e->env->plan->world;
    char *label = e->files.label;
    char(*all)[RF_DISK_LABEL_SIZE] = rf_xcalloc(world->n_ranks, sizeof(*all));
    enum rf_status status =
        rf_share_all(e->env, "label", label, RF_DISK_LABEL_SIZE, all, err);
    if (status == RF_OK) {
        snprintf(label, RF_DISK_LABEL_SIZE, "%.*s", RF_DISK_LABEL_SIZE - 1,
                 all[world->rank_of[RF_INFER][0]]);
        if (!rf_disk_label_is_good(label)) {
            status = rf_err_set(err, RF_ERR_PROTOCOL,
                                "the first inference rank sent an invalid file "
                                "name");
        }
    }
    free(all);
    return status;
}

static enum rf_status make_files(struct exporting *e, struct rf_err *err)
{
    return rf_disk_label(e->env->data_key, getppid(), e->files.label)
               ? rf_export_files_make(&e->files, err)
               : rf_err_set(err, RF_ERR_INTERNAL, "no digest");
}

static enum rf_status write_all(struct exporting *e, struct rf_err *err)
{
    const bool first = is_first(e->env);
    enum rf_status status = first ? make_files(e, err) : RF_OK;
    RF_THEN(status, meet(e, err));
    RF_THEN(status, write_own(e, err));
    RF_THEN(status, meet(e, err));
    if (first && status == RF_OK) {
        status = rf_export_files_name(&e->files, err);
    }
    return status;
}

enum rf_status rf_rank_export_run(const struct rf_rank_export_job *job,
                                  uint64_t *written, struct rf_err *err)
{
    struct exporting e = {.job = job, .env = job->env};
    enum rf_status status;
    RF_TRY(rf_export_plan(e.env->plan, RF_EXPORT_FILE_BYTES, &e.export, err));
    e.files = (struct rf_export_files){.folder = job->folder,
                                       .export = e.export,
                                       .plan = e.env->plan,
                                       .model = job->model};
    e.fds = rf_xcalloc(e.export->n_files, sizeof(*e.fds));
    memset(e.fds, 0xFF, e.export->n_files * sizeof(*e.fds)); /* -1 */
    status = write_all(&e, err);
    for (uint32_t i = 0; i < e.export->n_files; i++) {
        rf_fd_close(&e.fds[i]);
    }
    if (status == RF_OK) {
        *written = atomic_load(&e.written);
    }
    free(e.fds);
    rf_export_destroy(e.export);
    return status;
}
