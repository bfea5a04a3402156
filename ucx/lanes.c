/* See lanes.h. */
#include "ucx/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "ucx/peer_info.h"

/* "; 4294967295 more" */
#define MORE_BYTES 20

enum rf_status rf_ucx_lanes_ask(ucp_ep_h ep, struct rf_ucx_lanes *out,
                                struct rf_err *err)
{
    char *info = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&info, &size);
    if (file == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "what UCX says of itself");
    }
    ucp_ep_print_info(ep, file);
    (void)fclose(file);
    rf_ucx_describe(info, out);
    free(info);
    return RF_OK;
}

static void add(struct rf_ucx_lane_counts *counts, struct rf_ucx_lane_count new)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (strcmp(counts->list[i].text, new.text) == 0) {
            counts->list[i].n += new.n;
            return;
        }
    }
    RF_PUSH(counts->list, counts->n, counts->cap, new);
}

void rf_ucx_lanes_count(struct rf_ucx_lane_counts *counts, const char *how,
                        const char *names, enum rf_ucx_doubt doubt)
{
    struct rf_ucx_lane_count one = {.n = 1, .doubt = doubt};
    snprintf(one.text, sizeof(one.text), "%s %s", how, names);
    add(counts, one);
}

/* Appends "6 messages by tcp/lo" if there is room for it and `more` bytes. */
static bool append(char *out, const char *between,
                   const struct rf_ucx_lane_count *one, size_t more)
{
    char way[RF_UCX_LANE_BYTES + 16];
    const size_t used = strlen(out);
    const int length = snprintf(way, sizeof(way), "%s%" PRIu32 " %s", between,
                                one->n, one->text);
    if (used + (size_t)length + more > RF_REGISTRATION_SIZE) {
        return false;
    }
    memcpy(out + used, way, (size_t)length + 1);
    return true;
}

static void sum_up_doubts(const struct rf_ucx_lane_counts *counts,
                          struct rf_registration *out)
{
    for (size_t i = 0; i < counts->n; i++) {
        const struct rf_ucx_lane_count *one = &counts->list[i];
        if (one->doubt == RF_UCX_OVER_TCP) {
            (void)append(out->over_tcp, out->over_tcp[0] != '\0' ? ", " : "",
                         one, 1);
        } else if (one->doubt == RF_UCX_UNMAPPED && out->unmapped[0] == '\0') {
            snprintf(out->unmapped, sizeof(out->unmapped), "%s", one->text);
        }
    }
}

void rf_ucx_lanes_sum_up(const struct rf_ucx_lane_counts *counts,
                         struct rf_registration *out)
{
    size_t i = 0, used;
    *out = (struct rf_registration){.text = ""};
    sum_up_doubts(counts, out);
    snprintf(out->text, sizeof(out->text), "UCX %s", ucp_get_version_string());
    while (i < counts->n &&
           append(out->text, "; ", &counts->list[i], MORE_BYTES)) {
        i++;
    }
    used = strlen(out->text);
    if (i < counts->n) {
        snprintf(out->text + used, sizeof(out->text) - used, "; %zu more",
                 counts->n - i);
    }
}

/* One field per lane: its count, its doubt and its text. */
static struct rf_blob encode(const struct rf_ucx_lane_counts *counts)
{
    struct rf_blob out = {NULL, 0};
    for (size_t i = 0; i < counts->n; i++) {
        const struct rf_ucx_lane_count *one = &counts->list[i];
        uint8_t field[5 + RF_UCX_LANE_BYTES];
        const size_t length = strlen(one->text);
        rf_put_u32(field, one->n);
        field[4] = (uint8_t)one->doubt;
        memcpy(field + 5, one->text, length);
        rf_ucx_peer_info_append(&out, field, 5 + length);
    }
    return out;
}

static bool decode(struct rf_blob rest, struct rf_ucx_lane_counts *sum)
{
    const uint8_t *field;
    const void *data;
    size_t size;
    while (rest.size > 0) {
        struct rf_ucx_lane_count one = {.n = 0};
        if (!rf_ucx_peer_info_next(&rest, &data, &size) || size < 5 ||
            size - 5 >= sizeof(one.text)) {
            return false;
        }
        field = data;
        if (field[4] >= RF_UCX_DOUBTS) {
            return false;
        }
        one.n = rf_get_u32(field);
        one.doubt = field[4];
        memcpy(one.text, field + 5, size - 5);
        add(sum, one);
    }
    return true;
}

enum rf_status rf_ucx_lanes_publish(const struct rf_method_env *env,
                                    const struct rf_ucx_lane_counts *mine,
                                    struct rf_err *err)
{
    struct rf_ucx_lane_counts sum = {.n = 0};
    struct rf_blob info, *all = NULL;
    enum rf_status status;
    if (env->registration == NULL) {
        return RF_OK;
    }
    info = encode(mine);
    status = rf_share(env, info.data, info.size, &all, err);
    for (uint32_t r = 0; status == RF_OK && r < env->plan->world->n_ranks;
         r++) {
        status = decode(all[r], &sum) ? RF_OK : rf_ucx_peer_info_wrong(r, err);
    }
    if (status == RF_OK) {
        rf_ucx_lanes_sum_up(&sum, env->registration);
    }
    rf_shared_free(env, &all);
    rf_ucx_lanes_free(&sum);
    free(info.data);
    return status;
}

void rf_ucx_lanes_free(struct rf_ucx_lane_counts *counts)
{
    free(counts->list);
    *counts = (struct rf_ucx_lane_counts){.n = 0};
}
