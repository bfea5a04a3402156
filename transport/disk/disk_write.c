/*
 * Writing to files. See disk_carrier.h.
 *
 * The image goes first, in blocks, then packed ops in the order they become
 * ready. Written data counts once it is *synced*: at once without fsync, else
 * after fsync (always if ranks of other nodes read, whose file system would not
 * see the data earlier). Then its ledger entry is written and, on this node,
 * the readers' admissions arrive. If ranks of other nodes read, the ledger is
 * synced too, once per sync of the data.
 *
 * A full disk or any other failure to write is RF_ERR_IO with the folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "transport/disk/disk_carrier.h"

/* --- the syncer ----------------------------------------------------------- */

static void *sync_files(void *data)
{
    struct rf_disk_syncer *syncer = data;
    pthread_mutex_lock(&syncer->lock);
    while (!syncer->stop) {
        int fd = syncer->fd, failed;
        if (fd < 0) {
            pthread_cond_wait(&syncer->wake, &syncer->lock);
            continue;
        }
        pthread_mutex_unlock(&syncer->lock);
        failed = fdatasync(fd) == 0 ? 0 : errno;
        pthread_mutex_lock(&syncer->lock);
        syncer->failed = failed;
        syncer->fd = -1;
        syncer->done = true;
    }
    pthread_mutex_unlock(&syncer->lock);
    return NULL;
}

enum rf_status rf_disk_syncer_start(struct rf_disk_syncer *syncer,
                                    struct rf_err *err)
{
    int failed;
    syncer->fd = -1;
    pthread_mutex_init(&syncer->lock, NULL);
    pthread_cond_init(&syncer->wake, NULL);
    failed = pthread_create(&syncer->thread, NULL, sync_files, syncer);
    if (failed != 0) {
        return rf_err_errno(err, RF_ERR_NOMEM, failed, "start a thread%s",
                            rf_spawn_limits(failed));
    }
    syncer->started = true;
    return RF_OK;
}

void rf_disk_syncer_stop(struct rf_disk_syncer *syncer)
{
    if (!syncer->started) {
        return;
    }
    pthread_mutex_lock(&syncer->lock);
    syncer->stop = true;
    pthread_cond_signal(&syncer->wake);
    pthread_mutex_unlock(&syncer->lock);
    pthread_join(syncer->thread, NULL);
    pthread_cond_destroy(&syncer->wake);
    pthread_mutex_destroy(&syncer->lock);
    syncer->started = false;
}

static void ask_sync(struct rf_disk_syncer *syncer, int fd)
{
    pthread_mutex_lock(&syncer->lock);
    syncer->fd = fd;
    syncer->done = false;
    pthread_cond_signal(&syncer->wake);
    pthread_mutex_unlock(&syncer->lock);
}

static bool is_synced(struct rf_disk_syncer *syncer, int *failed)
{
    bool done;
    pthread_mutex_lock(&syncer->lock);
    done = syncer->done;
    *failed = syncer->failed;
    pthread_mutex_unlock(&syncer->lock);
    return done;
}

/* --- the image ------------------------------------------------------------ */

static int compare_ranges(const void *a, const void *b)
{
    const struct rf_disk_range *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void join_ranges(struct rf_disk_files *files)
{
    size_t kept = 0;
    if (files->n_ranges > 0) {
        qsort(files->ranges, files->n_ranges, sizeof(*files->ranges),
              compare_ranges);
    }
    for (size_t i = 0; i < files->n_ranges; i++) {
        struct rf_disk_range next = files->ranges[i];
        if (kept > 0 && next.at <= files->ranges[kept - 1].end) {
            files->ranges[kept - 1].end =
                RF_MAX(files->ranges[kept - 1].end, next.end);
        } else {
            files->ranges[kept++] = next;
        }
    }
    files->n_ranges = kept;
    files->image_end = kept > 0 ? files->ranges[kept - 1].end : 0;
}

void rf_disk_plan_image(struct rf_disk_files *files)
{
    const struct rf_method_env *env = files->engine->env;
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        const struct rf_op *op = &env->schedule->ops[i];
        if (op->src == env->rank && rf_disk_holds(files, op)) {
            RF_PUSH(
                files->ranges, files->n_ranges, files->range_cap,
                ((struct rf_disk_range){op->src_offset, rf_op_src_end(op)}));
        }
    }
    join_ranges(files);
}

/* --- writing -------------------------------------------------------------- */

static enum rf_status no_room(const struct rf_disk_files *files, int why,
                              struct rf_err *err)
{
    const char *folder = files->engine->env->plan->spec->disk_folder;
    struct statvfs disk;
    char left[32] = "unknown";
    if (statvfs(folder, &disk) == 0) {
        rf_format_bytes((uint64_t)disk.f_bavail * disk.f_frsize, left,
                        sizeof(left));
    }
    return rf_err_errno(err, RF_ERR_IO, why, "write to folder %s (%s free)",
                        folder, left);
}

static enum rf_status write_at(const struct rf_disk_files *files, int fd,
                               const void *data, uint64_t bytes,
                               uint64_t offset, struct rf_err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pwrite(fd, (const uint8_t *)data + done, bytes - done,
                           (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return no_room(files, n < 0 ? errno : ENOSPC, err);
        }
        done += (uint64_t)n;
    }
    return RF_OK;
}

static struct rf_disk_peer *own_files(const struct rf_disk_files *files)
{
    return &files->peers[files->engine->env->rank];
}

static enum rf_status write_entry(const struct rf_disk_files *files,
                                  uint64_t index, uint64_t offset,
                                  struct rf_err *err)
{
    uint8_t entry[RF_LEDGER_ENTRY] = {0};
    rf_put_u32(entry, files->engine->flow->generation);
    rf_put_u64(entry + 8, offset);
    return write_at(files, own_files(files)->ledger, entry, sizeof(entry),
                    index * RF_LEDGER_ENTRY, err);
}

/* Completes a send: its bytes can be read. */
static void finish_put(struct rf_disk_files *files, uint32_t send)
{
    struct rf_engine *engine = files->engine;
    const struct rf_flow *flow = engine->flow;
    uint32_t index = flow->actions[send].op;
    const struct rf_op *op = &flow->schedule->ops[index];
    uint32_t admit = flow->of_op[index].admit;
    if (op->src != op->dst && rf_disk_holds(files, op)) {
        engine->times.sent_bytes += rf_op_bytes(op);
    }
    if (admit != RF_NONE) {
        rf_flow_arrive(engine->flow, admit);
    }
    rf_engine_complete(engine, send);
}

static bool must_sync(const struct rf_disk_files *files)
{
    const struct rf_spec *spec = files->engine->env->plan->spec;
    return spec->disk_fsync || spec->disk_drop_cache || files->far_readers;
}

static enum rf_status write_image_block(struct rf_disk_files *files,
                                        struct rf_err *err)
{
    const struct rf_disk_range *range = &files->ranges[files->range_at];
    uint64_t at = range->at + files->range_done;
    uint64_t n = RF_MIN(range->end - at, RF_DISK_BLOCK);
    const uint8_t *from = files->engine->env->arena[RF_MEM_TRAIN].base;
    enum rf_status status =
        write_at(files, own_files(files)->data, from + at, n, at, err);
    files->range_done += n;
    files->moved_bytes += n;
    if (at + n == range->end) {
        files->range_at++;
        files->range_done = 0;
    }
    return status;
}

static enum rf_status write_image_entry(const struct rf_disk_files *files,
                                        struct rf_err *err)
{
    return files->n_ranges == 0
               ? RF_OK
               : write_entry(files, files->engine->env->schedule->n_world_ops,
                             0, err);
}

/* Writes a chunk, or a block, of the packed op `send`; *whole after the last.
 */
static enum rf_status write_packed_block(struct rf_disk_files *files,
                                         uint32_t send, bool *whole,
                                         struct rf_err *err)
{
    const uint32_t index = files->engine->flow->actions[send].op;
    const struct rf_op *op = &files->engine->flow->schedule->ops[index];
    const struct rf_coder *coder = &files->coders[index];
    const uint64_t total = coder->shape.total_items;
    const uint64_t head = coder->wire_item == 0 ? RF_DISK_CHUNK_HEAD : 0;
    struct rf_chunk chunk = {.first = files->put_done,
                             .items = total - files->put_done,
                             .bytes =
                                 head > 0 ? RF_CHUNK_BYTES : RF_DISK_BLOCK};
    if (files->put_done == 0) {
        files->put_offset = files->packed_end;
    }
    coder->codec->encode(coder,
                         rf_engine_place_of(files->engine, op, RF_COPY_SRC),
                         &chunk, files->stage + head);
    if (head > 0) {
        rf_put_u64(files->stage, chunk.items);
        rf_put_u64(files->stage + 8, chunk.bytes);
    }
    RF_TRY(write_at(files, own_files(files)->data, files->stage,
                    head + chunk.bytes, files->packed_end, err));
    files->packed_end += head + chunk.bytes;
    files->put_done += chunk.items;
    files->moved_bytes += chunk.bytes;
    if (op->src != op->dst) {
        files->engine->times.sent_bytes += chunk.bytes;
    }
    *whole = files->put_done == total;
    return RF_OK;
}

static enum rf_status write_packed_entry(const struct rf_disk_files *files,
                                         const struct rf_disk_put *put,
                                         struct rf_err *err)
{
    const struct rf_flow *flow = files->engine->flow;
    return write_entry(files,
                       flow->schedule->ops[flow->actions[put->send].op].id,
                       put->offset, err);
}

/* Handles the next send in order; image ops complete with the image. */
static enum rf_status next_put(struct rf_disk_files *files, bool *worked,
                               struct rf_err *err)
{
    const struct rf_flow *flow = files->engine->flow;
    uint32_t send = files->puts[files->put_at];
    const struct rf_op *op = &flow->schedule->ops[flow->actions[send].op];
    struct rf_disk_put put = {.send = send};
    enum rf_status status;
    bool whole;
    if (rf_disk_holds(files, op)) {
        if (files->image_synced) {
            files->put_at++;
            finish_put(files, send);
            *worked = true;
        }
        return RF_OK;
    }
    *worked = true;
    status = write_packed_block(files, send, &whole, err);
    if (status != RF_OK || !whole) {
        return status;
    }
    files->put_at++;
    files->put_done = 0;
    put.offset = files->put_offset;
    if (must_sync(files)) {
        files->unsynced[files->n_unsynced++] = put;
        return RF_OK;
    }
    status = write_packed_entry(files, &put, err);
    if (status == RF_OK) {
        finish_put(files, send);
    }
    return status;
}

static void begin_sync(struct rf_disk_files *files)
{
    files->syncing = true;
    files->n_syncing = files->n_unsynced;
    ask_sync(&files->syncer, own_files(files)->data);
}

/* The data is synced: records it in the ledger. */
static enum rf_status write_entries(struct rf_disk_files *files,
                                    struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (files->engine->env->plan->spec->disk_drop_cache) {
        (void)posix_fadvise(own_files(files)->data, 0, 0, POSIX_FADV_DONTNEED);
    }
    if (!files->image_synced) {
        status = write_image_entry(files, err);
    }
    for (uint32_t i = 0; i < files->n_syncing && status == RF_OK; i++) {
        status = write_packed_entry(files, &files->unsynced[i], err);
    }
    return status;
}

static void finish_sync(struct rf_disk_files *files)
{
    files->syncing = files->syncing_ledger = false;
    files->image_synced = true; /* the image comes first */
    for (uint32_t i = 0; i < files->n_syncing; i++) {
        finish_put(files, files->unsynced[i].send);
    }
    files->n_unsynced -= files->n_syncing;
    memmove(files->unsynced, files->unsynced + files->n_syncing,
            files->n_unsynced * sizeof(*files->unsynced));
}

/* Checks whether the current sync is done; *worked if it is. */
static enum rf_status end_sync(struct rf_disk_files *files, bool *worked,
                               struct rf_err *err)
{
    enum rf_status status = RF_OK;
    int failed;
    if (!is_synced(&files->syncer, &failed)) {
        return RF_OK;
    }
    *worked = true;
    if (failed != 0) {
        files->syncing = false;
        return no_room(files, failed, err);
    }
    if (!files->syncing_ledger) {
        status = write_entries(files, err);
        if (status == RF_OK && files->far_readers) {
            files->syncing_ledger = true;
            ask_sync(&files->syncer, own_files(files)->ledger);
            return RF_OK;
        }
    }
    if (status == RF_OK) {
        finish_sync(files);
    }
    return status;
}

static enum rf_status write_some(struct rf_disk_files *files, bool *worked,
                                 struct rf_err *err)
{
    if (files->range_at < files->n_ranges) {
        *worked = true;
        return write_image_block(files, err);
    }
    if (!files->image_written) {
        files->image_written = true;
        *worked = true;
        if (files->n_ranges > 0 && must_sync(files)) {
            begin_sync(files);
            return RF_OK;
        }
        files->image_synced = true;
        return write_image_entry(files, err);
    }
    if (files->put_at < files->n_puts) {
        return next_put(files, worked, err);
    }
    if (files->n_unsynced > 0) {
        begin_sync(files);
    }
    return RF_OK;
}

enum rf_status rf_disk_write(struct rf_disk_files *files, bool *worked,
                             struct rf_err *err)
{
    const uint64_t moved = files->moved_bytes;
    int64_t before = rf_now_ns();
    bool wrote = false;
    enum rf_status status = files->syncing ? end_sync(files, &wrote, err)
                                           : write_some(files, &wrote, err);
    if (wrote) {
        rf_engine_spent(files->engine, RF_TRACE_WRITE, before, RF_NONE,
                        files->moved_bytes - moved);
        *worked = true;
    }
    return status;
}
