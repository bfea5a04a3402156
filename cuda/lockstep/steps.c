/* Steps of a lockstep method. See steps.h. */
#include "cuda/lockstep/steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"

struct rf_step *rf_step_at(struct rf_steps *steps, size_t index, uint32_t round)
{
    while (steps->n <= index) {
        RF_PUSH(steps->at, steps->n, steps->capacity,
                ((struct rf_step){.round = round}));
    }
    return &steps->at[index];
}

static bool is_packed(const struct rf_message *message)
{
    return message->base == RF_BASE_SEND || message->base == RF_BASE_RECV;
}

uint64_t rf_slot_end(const struct rf_message *messages, size_t n)
{
    while (n > 0 && !is_packed(&messages[n - 1])) {
        n--;
    }
    return n == 0 ? 0
                  : rf_align_up(messages[n - 1].offset + messages[n - 1].bytes,
                                RF_SEGMENT_ALIGN);
}

bool rf_steps_copy_both_ways(const struct rf_steps *steps)
{
    uint64_t packed = 0, unpacked = 0;
    for (size_t s = 0; s < steps->n; s++) {
        const struct rf_step *step = &steps->at[s];
        packed += step->pack.plain.bytes + step->pack.cast.bytes;
        unpacked += step->unpack.plain.bytes + step->unpack.cast.bytes;
    }
    return packed > 0 && unpacked > 0;
}

void rf_steps_free(struct rf_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        struct rf_step *step = &steps->at[i];
        rf_slices_free(&step->pack.plain);
        rf_slices_free(&step->pack.cast);
        rf_slices_free(&step->unpack.plain);
        rf_slices_free(&step->unpack.cast);
        free(step->sends);
        free(step->recvs);
    }
    free(steps->at);
    *steps = (struct rf_steps){0};
}

static bool has_peer(const struct rf_message *messages, size_t n, uint32_t peer)
{
    for (size_t i = 0; i < n; i++) {
        if (messages[i].peer == peer) {
            return true;
        }
    }
    return false;
}

void rf_step_peers(const struct rf_step *step, char *out, size_t size)
{
    uint32_t last = 0;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < step->n_sends; i++) {
        last = RF_MAX(last, step->sends[i].peer);
    }
    for (size_t i = 0; i < step->n_recvs; i++) {
        last = RF_MAX(last, step->recvs[i].peer);
    }
    for (uint32_t r = 0; r <= last && used < size; r++) {
        if (has_peer(step->sends, step->n_sends, r) ||
            has_peer(step->recvs, step->n_recvs, r)) {
            used += (size_t)snprintf(out + used, size - used, "%s%u",
                                     used > 0 ? ", " : "", r);
        }
    }
}
