/* The start-up exchange. See nvshmem_table.h. */
#include "cuda/nvshmem/nvshmem_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/place.h"

/* On the wire: a header, then one entry per step, then one per message. */
struct head {
    struct rf_device_place place;
    uint64_t send_slot_bytes, recv_slot_bytes;
    uint32_t n_steps, n_entries;
};
struct row {
    uint32_t round, wave;
};
struct table_entry {
    uint32_t round, wave, from, index;
    uint64_t offset, bytes;
};

/* The number of a step within its round. */
static uint32_t wave_of(const struct rf_steps *steps, size_t index)
{
    uint32_t wave = 0;
    while (index > 0 && steps->at[index - 1].round == steps->at[index].round) {
        index--;
        wave++;
    }
    return wave;
}

static void *make_blob(const struct rf_steps *steps, struct head *head,
                       size_t *size)
{
    struct row *rows;
    struct table_entry *entry;
    unsigned char *blob;
    head->n_steps = (uint32_t)steps->n;
    for (size_t s = 0; s < steps->n; s++) {
        head->n_entries += (uint32_t)steps->at[s].n_recvs;
    }
    *size = sizeof(*head) + head->n_steps * sizeof(*rows) +
            head->n_entries * sizeof(*entry);
    blob = rf_xcalloc(1, *size);
    memcpy(blob, head, sizeof(*head));
    rows = (void *)(blob + sizeof(*head));
    entry = (void *)(rows + head->n_steps);
    for (size_t s = 0; s < steps->n; s++) {
        const struct rf_step *step = &steps->at[s];
        const uint32_t wave = wave_of(steps, s);
        rows[s] = (struct row){.round = step->round, .wave = wave};
        for (size_t m = 0; m < step->n_recvs; m++) {
            *entry++ = (struct table_entry){.round = step->round,
                                            .wave = wave,
                                            .from = step->recvs[m].peer,
                                            .index = (uint32_t)s,
                                            .offset = step->recvs[m].offset,
                                            .bytes = step->recvs[m].bytes};
        }
    }
    return blob;
}

/* Whether a peer's blob has the lengths given in its header. */
static bool is_whole(const struct rf_blob *blob)
{
    const struct head *head = blob->data;
    return blob->size >= sizeof(*head) &&
           blob->size == sizeof(*head) + head->n_steps * sizeof(struct row) +
                             head->n_entries * sizeof(struct table_entry);
}

static int by_round_wave(const void *a, const void *b)
{
    const struct rf_nvshmem_turn *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->round, y->round),
                      RF_COMPARE(x->wave, y->wave));
}

static void unite(struct rf_nvshmem_table *table, const struct rf_blob *all,
                  uint32_t n)
{
    size_t kept = 0;
    for (uint32_t r = 0; r < n; r++) {
        const struct head *head = all[r].data;
        const struct row *rows = (const void *)(head + 1);
        for (uint32_t s = 0; s < head->n_steps; s++) {
            RF_PUSH(table->at, table->n, table->capacity,
                    ((struct rf_nvshmem_turn){.round = rows[s].round,
                                              .wave = rows[s].wave,
                                              .local = SIZE_MAX}));
        }
        table->send_slot_bytes =
            RF_MAX(table->send_slot_bytes, head->send_slot_bytes);
        table->recv_slot_bytes =
            RF_MAX(table->recv_slot_bytes, head->recv_slot_bytes);
        table->most_steps = RF_MAX(table->most_steps, (uint64_t)head->n_steps);
    }
    if (table->n > 1) {
        qsort(table->at, table->n, sizeof(*table->at), by_round_wave);
    }
    for (size_t i = 0; i < table->n; i++) {
        if (kept == 0 ||
            by_round_wave(&table->at[kept - 1], &table->at[i]) != 0) {
            table->at[kept++] = table->at[i];
        }
    }
    table->n = kept;
}

static bool share_device(const struct rf_blob *all, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++) {
        const struct head *one = all[a].data;
        for (uint32_t b = 0; b < a; b++) {
            const struct head *other = all[b].data;
            if (rf_device_is_same(&one->place, &other->place)) {
                return true;
            }
        }
    }
    return false;
}

/* The place of our next send to this peer, `bytes` long. The peer's entries for
 * us have the order of our sends to it; those before *at are taken. */
static bool take_place(const struct head *head, uint32_t rank, uint32_t *at,
                       const struct rf_nvshmem_turn *turn, uint64_t bytes,
                       struct rf_nvshmem_place *out)
{
    const struct row *rows = (const void *)(head + 1);
    const struct table_entry *entries = (const void *)(rows + head->n_steps);
    const struct table_entry *entry;
    while (*at < head->n_entries && entries[*at].from != rank) {
        ++*at;
    }
    if (*at == head->n_entries) {
        return false;
    }
    entry = &entries[(*at)++];
    *out = (struct rf_nvshmem_place){.offset = entry->offset,
                                     .index = entry->index};
    return entry->round == turn->round && entry->wave == turn->wave &&
           entry->bytes == bytes;
}

static enum rf_status take_places(struct rf_nvshmem_table *table,
                                  const struct rf_steps *steps, uint32_t rank,
                                  const struct rf_blob *all, uint32_t *taken,
                                  struct rf_err *err)
{
    size_t local = 0;
    for (size_t i = 0; i < table->n && local < steps->n; i++) {
        struct rf_nvshmem_turn *turn = &table->at[i];
        const struct rf_step *ours = &steps->at[local];
        if (ours->round != turn->round || wave_of(steps, local) != turn->wave) {
            continue;
        }
        turn->local = local++;
        turn->places = rf_xcalloc(ours->n_sends, sizeof(*turn->places));
        for (size_t m = 0; m < ours->n_sends; m++) {
            const struct rf_message *send = &ours->sends[m];
            if (!take_place(all[send->peer].data, rank, &taken[send->peer],
                            turn, send->bytes, &turn->places[m])) {
                return rf_err_set(err, RF_ERR_INTERNAL,
                                  "rank %u does not expect a message of "
                                  "round %u, wave %u, with %llu bytes",
                                  send->peer, turn->round, turn->wave,
                                  (unsigned long long)send->bytes);
            }
        }
    }
    return RF_OK;
}

static enum rf_status take(struct rf_nvshmem_table *table,
                           const struct rf_method_env *env,
                           const struct rf_steps *steps,
                           const struct rf_blob *all, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    uint32_t *taken;
    enum rf_status status;
    for (uint32_t r = 0; r < n; r++) {
        if (!is_whole(&all[r])) {
            return rf_err_set(err, RF_ERR_PROTOCOL, "rank %u: bad table", r);
        }
    }
    table->share_device = share_device(all, n);
    unite(table, all, n);
    taken = rf_xcalloc(n, sizeof(*taken));
    status = take_places(table, steps, env->rank, all, taken, err);
    free(taken);
    return status;
}

enum rf_status rf_nvshmem_table_open(const struct rf_method_env *env,
                                     const struct rf_steps *steps,
                                     struct rf_nvshmem_table *out,
                                     struct rf_err *err)
{
    struct rf_blob *all = NULL;
    struct head head;
    enum rf_status status;
    void *blob;
    size_t size;
    memset(out, 0, sizeof(*out));
    memset(&head, 0, sizeof(head));
    head.send_slot_bytes = steps->send_slot_bytes;
    head.recv_slot_bytes = steps->recv_slot_bytes;
    RF_TRY(rf_device_place(&head.place, err));
    blob = make_blob(steps, &head, &size);
    status = rf_share(env, blob, size, &all, err);
    RF_THEN(status, take(out, env, steps, all, err));
    rf_shared_free(env, &all);
    free(blob);
    return status;
}

void rf_nvshmem_table_free(struct rf_nvshmem_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        free(table->at[i].places);
    }
    free(table->at);
    memset(table, 0, sizeof(*table));
}
