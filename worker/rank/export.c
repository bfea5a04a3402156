/*
 * Exporting. See export.h.
 *
 * Ranks write disjoint ranges of the same files with pwrite, on descriptors
 * opened for writing alone: a network file system then sends just those bytes.
 * Ranks that hold the same box leave it to the first of them. Everything is
 * synced before the files get their names.
 */
#include "worker/rank/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/parallel.h"
#include "common/store.h"
#include "planner/plan/export.h"
#include "worker/content/staging.h"

#define PART ".part"
#define INDEX "model.safetensors.index.json"

struct exporting {
    const struct rf_rank_export_job *job;
    const struct rf_method_env *env; /* the job's */
    struct rf_export *export;
    int *fds;                      /* by file */
    const struct rf_block *blocks; /* the batch's first */
    struct rf_staging staging;
    atomic_ullong written;
};

static char *path_of(const struct exporting *e, const char *name,
                     const char *suffix)
{
    return rf_xasprintf("%s/%s%s", e->job->folder, name, suffix);
}

static bool is_first(const struct rf_method_env *env)
{
    return env->plan->world->rank_of[RF_INFER][0] == env->rank;
}

/* --- By the first rank: before and after ---------------------------------- */

static enum rf_status refuse_existing(const struct exporting *e,
                                      const char *name, struct rf_err *err)
{
    char *path = path_of(e, name, "");
    enum rf_status status = RF_OK;
    if (access(path, F_OK) == 0) {
        status = rf_err_set(err, RF_ERR_IO,
                            "%s is there already: --export needs a folder "
                            "without a model",
                            path);
    }
    free(path);
    return status;
}

static enum rf_status make_file(const struct exporting *e,
                                const struct rf_export_file *file,
                                struct rf_err *err)
{
    char *path = path_of(e, file->name, PART);
    enum rf_status status = RF_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || rf_write_all(fd, file->head, file->head_bytes) != 0 ||
        ftruncate(fd, (off_t)file->bytes) != 0 || fsync(fd) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return status;
}

static enum rf_status make_files(const struct exporting *e, struct rf_err *err)
{
    const struct rf_export *export = e->export;
    enum rf_status status = refuse_existing(e, INDEX, err);
    for (uint32_t i = 0; status == RF_OK && i < export->n_files; i++) {
        status = refuse_existing(e, export->files[i].name, err);
    }
    for (uint32_t i = 0; status == RF_OK && i < export->n_files; i++) {
        status = make_file(e, &export->files[i], err);
    }
    return status;
}

static void remove_parts(const struct exporting *e)
{
    for (uint32_t i = 0; i < e->export->n_files; i++) {
        char *path = path_of(e, e->export->files[i].name, PART);
        unlink(path);
        free(path);
    }
}

static enum rf_status name_file(const struct exporting *e, const char *name,
                                struct rf_err *err)
{
    char *part = path_of(e, name, PART), *path = path_of(e, name, "");
    enum rf_status status = RF_OK;
    if (rename(part, path) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    free(part);
    free(path);
    return status;
}

static enum rf_status store(const struct exporting *e, const char *name,
                            char *text, struct rf_err *err)
{
    char *path = path_of(e, name, "");
    enum rf_status status = rf_store(path, text, strlen(text), err);
    free(path);
    free(text);
    return status;
}

/* The configuration that stands beside the tensors of a checkpoint or manifest;
 * one that made the tensors may have overrides, and is not copied. */
static enum rf_status store_config(const struct exporting *e,
                                   struct rf_err *err)
{
    const json_t *config = json_object_get(e->job->model, "config");
    if (config == NULL || json_object_get(e->job->model, "manifest") == NULL) {
        return RF_OK;
    }
    return store(e, "config.json", json_dumps(config, JSON_INDENT(2)), err);
}

/* The index last: with it the folder is a model. */
static enum rf_status name_files(const struct exporting *e, struct rf_err *err)
{
    const struct rf_export *export = e->export;
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; status == RF_OK && i < export->n_files; i++) {
        status = name_file(e, export->files[i].name, err);
    }
    RF_THEN(status, store_config(e, err));
    RF_THEN(status,
            store(e, INDEX, rf_export_index(export, e->env->plan), err));
    return status;
}

/* --- By every rank: its pieces -------------------------------------------- */

static enum rf_status open_file(struct exporting *e, uint32_t i,
                                struct rf_err *err)
{
    char *path = path_of(e, e->export->files[i].name, PART);
    enum rf_status status = RF_OK;
    e->fds[i] = open(path, O_WRONLY | O_CLOEXEC);
    if (e->fds[i] < 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno,
                              "%s, which the first inference rank has made: "
                              "do all inference nodes share the folder?",
                              path);
    }
    free(path);
    return status;
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

static const struct rf_piece *piece_of(const struct exporting *e,
                                       const struct rf_block *block)
{
    return &rf_plan_layout(e->env->plan, RF_INFER, e->env->rank)
                ->pieces[block->piece];
}

static struct rf_place place_of(const struct exporting *e,
                                const struct rf_piece *piece)
{
    const struct rf_rank_export_job *job = e->job;
    return rf_place_of(&e->env->arena[RF_MEM_INFER], job->method->base_of,
                       job->state, piece);
}

/* Block `i` of the batch, from its place or buffer number i. */
static enum rf_status write_block(size_t i, unsigned thread, void *data,
                                  struct rf_err *err)
{
    struct exporting *e = data;
    const struct rf_block *block = &e->blocks[i];
    const struct rf_piece *piece = piece_of(e, block);
    const struct rf_plan *plan = e->env->plan;
    const struct rf_place place = place_of(e, piece);
    const struct rf_export_place to = rf_export_place_of(
        e->export, plan, piece->family, block->box.start[RF_DIM_LAYER],
        block->box.start[RF_DIM_EXPERT]);
    const uint8_t *buffer = rf_staging_buffer(&e->staging, i);
    enum rf_status status = RF_OK;
    struct rf_run_walk walk;
    struct rf_stretch run;
    uint64_t offset;
    (void)thread;
    rf_block_walk(block, &plan->model->families[piece->family], piece,
                  place.stride, &walk, &offset);
    while (status == RF_OK && rf_runs_next(&walk, &run)) {
        const uint64_t bytes = run.elements * block->item;
        const uint8_t *from = buffer != NULL
                                  ? buffer
                                  : (uint8_t *)place.base + offset + run.offset;
        status = write_at(e->fds[to.file], e->export->files[to.file].name, from,
                          bytes, to.offset + run.element * block->item, err);
        buffer += buffer != NULL ? bytes : 0;
    }
    atomic_fetch_add(&e->written, block->bytes);
    return status;
}

static enum rf_status copy_batch(const struct exporting *e, size_t n,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < n; i++) {
        const struct rf_piece *piece = piece_of(e, &e->blocks[i]);
        const struct rf_place place = place_of(e, piece);
        status = rf_staging_copy(&e->staging, RF_STAGE_OUT, e->env->plan, piece,
                                 &e->blocks[i], &place,
                                 rf_staging_buffer(&e->staging, i), err);
    }
    return status;
}

static enum rf_status write_blocks(struct exporting *e, size_t n,
                                   struct rf_err *err)
{
    const bool staged = e->staging.buffers != NULL;
    struct rf_parallel parallel = {.threads = RF_READ_THREADS,
                                   .work = write_block,
                                   .data = e,
                                   .abort = e->env->abort};
    enum rf_status status = RF_OK;
    while (status == RF_OK && n > 0) {
        parallel.jobs = staged ? RF_MIN(n, (size_t)RF_READ_THREADS) : n;
        status = staged ? copy_batch(e, parallel.jobs, err) : RF_OK;
        RF_THEN(status, rf_parallel_run(&parallel, err));
        e->blocks += parallel.jobs;
        n -= parallel.jobs;
    }
    return status;
}

/* The blocks that this rank writes, in front. */
static size_t keep_own(const struct exporting *e, struct rf_block *blocks,
                       size_t n)
{
    size_t kept = 0;
    uint32_t piece = RF_NONE;
    bool own = false;
    for (size_t i = 0; i < n; i++) {
        if (blocks[i].piece != piece) {
            piece = blocks[i].piece;
            own = rf_export_writes(e->env->plan, e->env->rank,
                                   piece_of(e, &blocks[i]));
        }
        if (own) {
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

static enum rf_status write_own(struct exporting *e, struct rf_err *err)
{
    size_t n = 0;
    struct rf_block *blocks = rf_blocks_of(e->env->plan, RF_INFER, e->env->rank,
                                           RF_READ_BLOCK_BYTES, &n);
    enum rf_status status = RF_OK;
    n = keep_own(e, blocks, n);
    e->blocks = blocks;
    for (uint32_t i = 0; status == RF_OK && n > 0 && i < e->export->n_files;
         i++) {
        status = open_file(e, i, err);
    }
    if (status == RF_OK && n > 0) {
        status = rf_staging_create(e->env->memory, blocks, n, &e->staging, err);
    }
    if (status == RF_OK && n > 0) {
        status = write_blocks(e, n, err);
    }
    if (status == RF_OK && n > 0) {
        status = sync_files(e, err);
    }
    rf_staging_free(&e->staging);
    free(blocks);
    return status;
}

/* --- The step ------------------------------------------------------------- */

/* All have come this far. */
static enum rf_status meet(const struct rf_method_env *env, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    enum rf_status status = env->exchange(env->exchange_data, "", 1, all, err);
    rf_blobs_free(all, n);
    free(all);
    return status;
}

static enum rf_status write_all(struct exporting *e, struct rf_err *err)
{
    const bool first = is_first(e->env);
    enum rf_status status;
    RF_TRY(first ? make_files(e, err) : RF_OK);
    status = meet(e->env, err);
    RF_THEN(status, write_own(e, err));
    RF_THEN(status, meet(e->env, err));
    if (first && status == RF_OK) {
        status = name_files(e, err);
    }
    if (first && status != RF_OK) {
        remove_parts(e);
    }
    return status;
}

enum rf_status rf_rank_export_run(const struct rf_rank_export_job *job,
                                  uint64_t *written, struct rf_err *err)
{
    struct exporting e = {.job = job, .env = job->env};
    enum rf_status status;
    RF_TRY(rf_export_plan(e.env->plan, RF_EXPORT_FILE_BYTES, &e.export, err));
    e.fds = rf_xcalloc(e.export->n_files, sizeof(*e.fds));
    memset(e.fds, 0xFF, e.export->n_files * sizeof(*e.fds)); /* -1 */
    status = write_all(&e, err);
    for (uint32_t i = 0; i < e.export->n_files; i++) {
        if (e.fds[i] >= 0) {
            close(e.fds[i]);
        }
    }
    if (status == RF_OK) {
        *written = atomic_load(&e.written);
    }
    free(e.fds);
    rf_export_destroy(e.export);
    return status;
}
