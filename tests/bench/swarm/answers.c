/*
 * What agents say: the sizes and members of a healthy node with GPUs. The
 * figures are made up; digests are of the real plan, which the coordinator
 * compares.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/version.h"
#include "tests/bench/swarm/agents.h"

static json_t *gpu(uint32_t node, uint32_t slot)
{
    char uuid[64], bus[32];
    snprintf(uuid, sizeof(uuid), "GPU-%08x-0000-4000-8000-%012x", node, slot);
    snprintf(bus, sizeof(bus), "00000000:%02X:00.0", slot);
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:i}", "index", (int)slot,
                     "name", "NVIDIA H100 80GB HBM3", "uuid", uuid,
                     "pci_bus_id", bus, "memory_bytes", (json_int_t)85520809984,
                     "compute_capability", "9.0", "multiprocessors", 132);
}

json_t *swarm_hello(const struct swarm_agent *agent)
{
    char host[32], boot_id[64], address[32];
    json_t *gpus = json_array(), *hello;
    snprintf(host, sizeof(host), "node-%u", agent->node);
    snprintf(boot_id, sizeof(boot_id), "%08x-0000-4000-8000-000000000000",
             agent->node);
    snprintf(address, sizeof(address), "10.0.%u.%u", agent->node >> 8,
             agent->node & 0xff);
    for (uint32_t s = 0; s < agent->swarm->slots; s++) {
        json_array_append_new(gpus, gpu(agent->node, s));
    }
    hello = json_pack(
        "{s:[ii], s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:s, s:s, "
        "s:[{s:s, s:i, s:i, s:s}], s:{s:n, s:n, s:n, s:n}, s:o}",
        "protocol", RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "node", (int)agent->node,
        "version", rf_version(), "build", rf_build(), "control", "tcp",
        "hostname", host, "boot_id", boot_id, "address", address, "cpus", 192,
        "memory_bytes", (json_int_t)2164663517184, "memory_available_bytes",
        (json_int_t)2061584302080, "kernel", "Linux 6.8.0-45-generic x86_64",
        "cpu", "AMD EPYC 9654", "nics", "name", "eth0", "speed_mbit", 100000,
        "mtu", 9000, "address", address, "methods", "host", "tcp", "shm",
        "null", "gpus", gpus);
    return hello;
}

/* --- Answers to steps ----------------------------------------------------- */

static void add_prepared(const struct swarm *swarm, FILE *out)
{
    fprintf(out,
            ",\"prepared\":{\"plan_digest\":\"%s\",\"schedule_digest\":\"%s\","
            "\"plan_ms\":12.125,\"open_ms\":2.25,\"connect_ms\":3.5,"
            "\"arena_bytes\":{\"train\":1048576,\"infer\":1048576,"
            "\"stage\":0}}",
            swarm->plan_digest, swarm->schedule_digest);
}

/* Of a link only the receiving rank has figures. */
static void add_probed(const struct swarm *swarm, uint32_t rank, FILE *out)
{
    const char *kind = swarm->step.message.step.kind;
    if (kind == NULL || strcmp(kind, "link") != 0) {
        fputs(",\"probed\":{\"gbytes_per_s\":21.5,"
              "\"single_gbytes_per_s\":9.75}",
              out);
    } else if (swarm->receives[rank]) {
        fputs(",\"probed\":{\"gbytes_per_s\":11.25,\"latency_us\":20.5}", out);
    }
}

static void add_ran(const struct swarm *swarm, uint32_t rank, FILE *out)
{
    const int64_t start = swarm->step.message.step.start_at_ns;
    const int64_t took = 5000000 + (int64_t)(rank % 1000) * 100;
    fprintf(out,
            ",\"ran\":{\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64
            ",\"ns\":%" PRId64 ",\"pack_ns\":1200345,\"wire_ns\":2500678,"
            "\"unpack_ns\":900123,\"sync_ns\":10456,\"sent_bytes\":1048576,"
            "\"received_bytes\":1048576}",
            start, start + took, took);
}

static void add_part(const struct swarm *swarm, uint32_t rank, FILE *out)
{
    const char *step = swarm->step.message.step.step;
    if (strcmp(step, "prepare") == 0) {
        add_prepared(swarm, out);
    } else if (strcmp(step, "probe") == 0) {
        add_probed(swarm, rank, out);
    } else if (strcmp(step, "run") == 0) {
        add_ran(swarm, rank, out);
    } else if (strcmp(step, "close") == 0) {
        fputs(",\"closed\":{\"host_peak_bytes\":25212345,"
              "\"device_peak_bytes\":0}",
              out);
    }
}

static void add_answers(const struct swarm *swarm,
                        const struct swarm_agent *agent, FILE *out)
{
    fputs(",\"ranks\":[", out);
    for (uint32_t i = 0; i < agent->n_ranks; i++) {
        const uint32_t rank = agent->first_rank + i;
        fprintf(out, "%s{\"rank\":%u,\"ok\":true", i > 0 ? "," : "", rank);
        add_part(swarm, rank, out);
        fputc('}', out);
    }
    fputc(']', out);
}

char *swarm_done(const struct swarm *swarm, const struct swarm_agent *agent)
{
    const struct rf_msg_step *step = &swarm->step.message.step;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        abort();
    }
    fprintf(out, "{\"attempt\":%u,\"seq\":%" PRIu64, step->attempt, step->seq);
    if (strcmp(step->step, "fill") == 0) {
        fputs(",\"ok\":true,\"ranks\":[]", out); /* no results */
    } else {
        add_answers(swarm, agent, out);
    }
    fputc('}', out);
    fclose(out);
    return text;
}

/* Both digests, as ranks compare them. */
char *swarm_exchange(const struct swarm *swarm, const struct swarm_agent *agent)
{
    char data[4 * RF_HASH_TEXT_SIZE + 1], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        abort();
    }
    for (size_t i = 0; i < 2 * RF_HASH_TEXT_SIZE; i++) {
        const char *from =
            i < RF_HASH_TEXT_SIZE ? swarm->plan_digest : swarm->schedule_digest;
        snprintf(data + 2 * i, 3, "%02x",
                 (unsigned char)from[i % RF_HASH_TEXT_SIZE]);
    }
    fprintf(out, "{\"attempt\":%u,\"seq\":0,\"parts\":[",
            swarm->step.message.step.attempt);
    for (uint32_t i = 0; i < agent->n_ranks; i++) {
        fprintf(out, "%s{\"rank\":%u,\"data\":\"%s\"}", i > 0 ? "," : "",
                agent->first_rank + i, data);
    }
    fputs("]}", out);
    fclose(out);
    return text;
}
