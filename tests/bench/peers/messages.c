/* Ops as messages, packed where they are strided. See peer.h. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/bench/peers/peer.h"
#include "transport/codec/strided_copy.h"

static uint8_t *at(const struct peer_env *env, uint8_t mem, uint64_t offset)
{
    return (uint8_t *)env->arena[mem].base + offset;
}

static void add(struct peer_messages *out, struct peer_message *message,
                const struct rf_op *op, bool pack_all)
{
    const struct peer_env *env = out->env;
    struct rf_copy_shape shape;
    rf_copy_shape_of(op, &shape);
    message->op = op;
    message->bytes = rf_op_bytes(op);
    if (shape.n_dims > 0 || pack_all) {
        message->at = message->buffer = rf_xcalloc(message->bytes, 1);
        memset(message->buffer, 1, message->bytes); /* not while timed */
    } else if (op->src == env->rank) {
        message->at = at(env, op->src_mem, op->src_offset);
    } else {
        message->at = at(env, op->dst_mem, op->dst_offset);
    }
}

void peer_messages_make(const struct peer_env *env, bool pack_all,
                        struct peer_messages *out)
{
    const struct rf_schedule *schedule = env->schedule;
    *out = (struct peer_messages){.env = env};
    out->sends = rf_xcalloc(schedule->n_ops, sizeof(*out->sends));
    out->receives = rf_xcalloc(schedule->n_ops, sizeof(*out->receives));
    out->copies = rf_xcalloc(schedule->n_ops, sizeof(const struct rf_op *));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == env->rank && op->dst == env->rank) {
            out->copies[out->n_copies++] = op;
        } else if (op->src == env->rank) {
            add(out, &out->sends[out->n_sends++], op, pack_all);
        } else if (op->dst == env->rank) {
            add(out, &out->receives[out->n_receives++], op, pack_all);
        }
    }
}

static void free_all(struct peer_message *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].buffer);
    }
    free(list);
}

void peer_messages_free(struct peer_messages *messages)
{
    free_all(messages->sends, messages->n_sends);
    free_all(messages->receives, messages->n_receives);
    free(messages->copies);
}

/* Calls memcpy for every run between the box and `buffer`. */
static void each_run(const struct rf_op *op, uint8_t *buffer, uint8_t *box,
                     enum rf_copy_side side)
{
    struct rf_copy_shape shape;
    rf_copy_shape_of(op, &shape);
    for (uint64_t run = 0; run < rf_copy_shape_runs(&shape); run++) {
        uint64_t src, dst;
        rf_copy_run_at(&shape, run, &src, &dst);
        if (side == RF_COPY_SRC) {
            memcpy(buffer, box + src, shape.run_items);
        } else {
            memcpy(box + dst, buffer, shape.run_items);
        }
        buffer += shape.run_items;
    }
}

void peer_message_pack(const struct peer_messages *messages,
                       const struct peer_message *message)
{
    const struct rf_op *op = message->op;
    if (message->buffer != NULL) {
        each_run(op, message->buffer,
                 at(messages->env, op->src_mem, op->src_offset), RF_COPY_SRC);
    }
}

void peer_message_unpack(const struct peer_messages *messages,
                         const struct peer_message *message)
{
    const struct rf_op *op = message->op;
    if (message->buffer != NULL) {
        each_run(op, message->buffer,
                 at(messages->env, op->dst_mem, op->dst_offset), RF_COPY_DST);
    }
}

void peer_copy_op(const struct peer_env *env, const struct rf_op *op,
                  const uint8_t *arena)
{
    const uint8_t *src = arena + op->src_offset;
    uint8_t *dst = at(env, op->dst_mem, op->dst_offset);
    struct rf_copy_shape shape;
    rf_copy_shape_of(op, &shape);
    for (uint64_t run = 0; run < rf_copy_shape_runs(&shape); run++) {
        uint64_t from, to;
        rf_copy_run_at(&shape, run, &from, &to);
        memcpy(dst + to, src + from, shape.run_items);
    }
}

void peer_copy_local(const struct peer_messages *messages)
{
    for (size_t i = 0; i < messages->n_copies; i++) {
        const struct rf_op *op = messages->copies[i];
        peer_copy_op(messages->env, op, messages->env->arena[op->src_mem].base);
    }
}
