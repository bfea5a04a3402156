/*
 * Reading from files. See disk_carrier.h.
 *
 * Long runs are read straight into the arena. Short rows of an image that are
 * close together are read in one block, gaps included, and picked from it;
 * sparse ones one by one. Packed ops are read in blocks.
 *
 * The ledgers of ranks on other nodes tell what these have written. They are
 * reopened for every check, because network file systems revalidate only on
 * open.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "transport/disk/disk_carrier.h"
#include "transport/info/disk_reads.h"

static enum rf_status read_at(int fd, void *out, uint64_t bytes,
                              uint64_t offset, uint32_t rank,
                              struct rf_err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (uint8_t *)out + done, bytes - done,
                          (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return rf_err_errno(err, RF_ERR_IO, n < 0 ? errno : EIO,
                                "read the file of rank %" PRIu32, rank);
        }
        done += (uint64_t)n;
    }
    return RF_OK;
}

/* --- ledgers of other nodes ----------------------------------------------- */

/* Reads one ledger entry; *ready if it is of this iteration. */
static enum rf_status read_entry(struct rf_disk_files *files, uint32_t rank,
                                 uint64_t index, bool *ready, uint64_t *offset,
                                 struct rf_err *err)
{
    uint8_t entry[RF_LEDGER_ENTRY] = {0};
    ssize_t n = pread(files->peers[rank].ledger, entry, sizeof(entry),
                      (off_t)(index * RF_LEDGER_ENTRY));
    if (n < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno,
                            "read the ledger of rank %" PRIu32, rank);
    }
    *ready = n == (ssize_t)sizeof(entry) &&
             rf_get_u32(entry) == files->engine->flow->generation;
    *offset = rf_get_u64(entry + 8);
    return RF_OK;
}

/* Whether an op from another node has been written. Checks an image once per
 * pass (`looked_at`: the source opened last). */
static enum rf_status is_written(struct rf_disk_files *files,
                                 const struct rf_op *op, uint32_t *looked_at,
                                 bool *ready, struct rf_err *err)
{
    struct rf_disk_peer *peer = &files->peers[op->src];
    uint32_t generation = files->engine->flow->generation;
    bool packed = !rf_disk_holds(files, op);
    enum rf_status status;
    uint64_t offset;
    *ready = !packed && peer->image == generation;
    if (*ready || (!packed && *looked_at == op->src)) {
        return RF_OK;
    }
    if (*looked_at != op->src) {
        *looked_at = op->src;
        RF_TRY(rf_disk_reopen(files, op->src, true, err));
    }
    status =
        read_entry(files, op->src,
                   packed ? op->id : files->engine->env->schedule->n_world_ops,
                   ready, &offset, err);
    if (*ready && !packed) {
        peer->image = generation;
    }
    return status;
}

/* Allows admission of written ops from other nodes. */
static enum rf_status look_far(struct rf_disk_files *files, bool *worked,
                               struct rf_err *err)
{
    const struct rf_flow *flow = files->engine->flow;
    uint32_t kept = 0, looked_at = RF_NONE;
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < files->n_waiting && status == RF_OK; i++) {
        uint32_t recv = files->waiting[i];
        uint32_t index = flow->actions[recv].op;
        bool ready = false;
        status = is_written(files, &flow->schedule->ops[index], &looked_at,
                            &ready, err);
        if (ready) {
            rf_flow_arrive(files->engine->flow, flow->of_op[index].admit);
            *worked = true;
        } else {
            files->waiting[kept++] = recv;
        }
    }
    files->n_waiting = kept;
    return status;
}

/* --- reading -------------------------------------------------------------- */

/* An op being read. */
struct get {
    const struct rf_op *op;
    const struct rf_coder *coder;
    int fd;
    uint8_t *dst;
};

static enum rf_status refuse(const struct get *get, const char *wrong,
                             struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "rank %" PRIu32 " wrote a chunk of op %" PRIu32 " %s",
                      get->op->src, get->op->id, wrong);
}

/* Reads `chunk` from `offset` of the file through the stage. */
static enum rf_status get_chunk(struct rf_disk_files *files,
                                const struct get *get,
                                const struct rf_chunk *chunk, uint64_t offset,
                                struct rf_err *err)
{
    const char *wrong;
    RF_TRY(read_at(get->fd, files->stage, chunk->bytes, offset, get->op->src,
                   err));
    wrong =
        get->coder->codec->decode(get->coder, chunk, files->stage, get->dst);
    return wrong == NULL ? RF_OK : refuse(get, wrong, err);
}

/* Reads a chunk, or a block, of a packed op. */
static enum rf_status get_packed(struct rf_disk_files *files,
                                 const struct get *get, struct rf_chunk *out,
                                 struct rf_err *err)
{
    const struct rf_coder *coder = get->coder;
    struct rf_chunk chunk = {.first = files->get_done,
                             .items =
                                 coder->shape.total_items - files->get_done};
    if (coder->wire_item > 0) {
        chunk.items = RF_MIN(chunk.items, RF_DISK_BLOCK / coder->wire_item);
        chunk.bytes = chunk.items * coder->wire_item;
    } else {
        uint8_t head[RF_DISK_CHUNK_HEAD];
        RF_TRY(read_at(get->fd, head, sizeof(head), files->get_offset,
                       get->op->src, err));
        chunk.items = rf_get_u64(head);
        chunk.bytes = rf_get_u64(head + 8);
        if (!rf_coder_takes(coder, &chunk)) {
            return refuse(get, RF_CHUNK_MALFORMED, err);
        }
        files->get_offset += sizeof(head);
    }
    RF_TRY(get_chunk(files, get, &chunk, files->get_offset, err));
    files->get_offset += chunk.bytes;
    *out = chunk;
    return RF_OK;
}

/* Reads from one run of an image, into place or through the stage. */
static enum rf_status get_run(struct rf_disk_files *files,
                              const struct get *get, struct rf_chunk *out,
                              struct rf_err *err)
{
    const struct rf_copy_shape *shape = &get->coder->shape;
    const uint32_t item = get->coder->wire_item;
    const uint64_t at = files->get_done, skip = at % shape->run_items;
    const uint64_t n = RF_MIN(shape->run_items - skip, RF_DISK_BLOCK / item);
    uint64_t src, dst;
    rf_copy_run_at(shape, at / shape->run_items, &src, &dst);
    src += get->op->src_offset + skip * item;
    *out = (struct rf_chunk){.first = at, .items = n, .bytes = n * item};
    return get->coder->codec->destination_view &&
                   rf_disk_reads_into_place(get->op, shape)
               ? read_at(get->fd, get->dst + dst + skip, n, src, get->op->src,
                         err)
               : get_chunk(files, get, out, src, err);
}

/* Reads whole rows of an image's innermost loop, picked from one block. */
static enum rf_status get_rows(struct rf_disk_files *files,
                               const struct get *get, struct rf_chunk *out,
                               struct rf_err *err)
{
    const struct rf_copy_shape *shape = &get->coder->shape;
    const uint32_t inner = shape->n_dims - 1;
    const uint64_t run = files->get_done / shape->run_items;
    const uint64_t run_bytes = shape->run_items * get->coder->wire_item;
    const uint64_t stride = shape->src_stride[inner];
    const struct rf_chunk row_chunk = {.items = shape->run_items,
                                       .bytes = run_bytes};
    struct rf_coder one = *get->coder; /* of a single run */
    uint64_t rows = 1, src, dst;
    one.shape.n_dims = 0;
    if (rf_disk_reads_dense(shape)) {
        rows = RF_MIN(shape->count[inner] - run % shape->count[inner],
                      1 + (RF_DISK_BLOCK - run_bytes) / stride);
    }
    rf_copy_run_at(shape, run, &src, &dst);
    RF_TRY(read_at(get->fd, files->stage, (rows - 1) * stride + run_bytes,
                   get->op->src_offset + src, get->op->src, err));
    for (uint64_t row = 0; row < rows; row++) {
        const char *wrong =
            one.codec->decode(&one, &row_chunk, files->stage + row * stride,
                              get->dst + dst + row * shape->dst_stride[inner]);
        if (wrong != NULL) {
            return refuse(get, wrong, err);
        }
    }
    *out = (struct rf_chunk){.first = files->get_done,
                             .items = rows * shape->run_items,
                             .bytes = rows * run_bytes};
    return RF_OK;
}

/* Before the first read from a source in an iteration, reopens its file if it
 * is on another node, and drops its cache on request. For each packed op, finds
 * its offset in the file. */
static enum rf_status begin_get(struct rf_disk_files *files,
                                const struct rf_op *op, struct rf_err *err)
{
    struct rf_disk_peer *peer = &files->peers[op->src];
    const struct rf_engine *engine = files->engine;
    bool far = engine->flow->slots[op->src] == RF_NONE, ready = true;
    enum rf_status status = RF_OK;
    if (peer->generation != engine->flow->generation) {
        peer->generation = engine->flow->generation;
        if (far) {
            status = rf_disk_reopen(files, op->src, false, err);
        }
        if (status == RF_OK && engine->env->plan->spec->disk_drop_cache) {
            (void)posix_fadvise(peer->data, 0, 0, POSIX_FADV_DONTNEED);
        }
    }
    if (status == RF_OK && !rf_disk_holds(files, op)) {
        status =
            read_entry(files, op->src, op->id, &ready, &files->get_offset, err);
    }
    if (status == RF_OK && !ready) {
        status = rf_err_set(err, RF_ERR_PROTOCOL,
                            "rank %" PRIu32 " did not write op %" PRIu32,
                            op->src, op->id);
    }
    return status;
}

static enum rf_status read_some(struct rf_disk_files *files, struct rf_err *err)
{
    struct rf_engine *engine = files->engine;
    const struct rf_flow *flow = engine->flow;
    uint32_t admit = files->gets[files->gets_out % flow->n_actions];
    uint32_t index = flow->actions[admit].op;
    const struct rf_op *op = &flow->schedule->ops[index];
    struct get get = {
        .op = op,
        .coder = &files->coders[index],
        .dst = rf_engine_place_of(engine, op, RF_COPY_DST),
    };
    enum rf_status status = RF_OK;
    struct rf_chunk got;
    if (files->get_done == 0) {
        status = begin_get(files, op, err);
    }
    if (status != RF_OK) {
        return status;
    }
    get.fd = files->peers[op->src].data;
    RF_TRY(!rf_disk_holds(files, op) ? get_packed(files, &get, &got, err)
           : rf_disk_reads_short_rows(&get.coder->shape)
               ? get_rows(files, &get, &got, err)
               : get_run(files, &get, &got, err));
    files->get_done += got.items;
    files->moved_bytes += got.bytes;
    if (op->src != op->dst) {
        engine->times.received_bytes += got.bytes;
    }
    if (files->get_done == get.coder->shape.total_items) {
        files->get_done = 0;
        files->gets_out++;
        rf_engine_complete(engine, flow->of_op[index].recv);
    }
    return RF_OK;
}

enum rf_status rf_disk_read(struct rf_disk_files *files, bool *worked,
                            struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (files->n_waiting > 0) {
        status = look_far(files, worked, err);
    }
    if (status == RF_OK && files->gets_in != files->gets_out) {
        const uint32_t action =
            files->gets[files->gets_out % files->engine->flow->n_actions];
        const uint64_t moved = files->moved_bytes;
        int64_t before = rf_now_ns();
        status = read_some(files, err);
        rf_engine_spent(files->engine, RF_TRACE_READ, before,
                        files->engine->flow->actions[action].op,
                        files->moved_bytes - moved);
        *worked = true;
    }
    return status;
}
