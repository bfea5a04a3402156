/*
 * See counters.h. One read of /proc/net/dev has the counters of all interfaces
 * of this process's network namespace; sysfs would take two files for each.
 */
#include "worker/helper/counters.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "worker/shared/sysfs.h"

#define RDMA_WORD_BYTES 4
/* Where a port's counter of 32 bits stands still. */
#define RDMA_LAST_BYTES ((uint64_t)UINT32_MAX * RDMA_WORD_BYTES)

/* Numbers of a line of /proc/net/dev. */
enum {
    RECEIVED_BYTES = 0,
    RECEIVED_ERRORS = 2,
    RECEIVED_DROPPED = 3,
    SENT_BYTES = 8,
    SENT_ERRORS = 10,
    SENT_DROPPED = 11,
};

FILE *rf_counters_open(const char *root)
{
    char *path = rf_xasprintf("%s/proc/net/dev", root);
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

bool rf_counters_next(FILE *file, struct rf_counters_line *out)
{
    char line[512];
    while (fgets(line, sizeof(line), file) != NULL) {
        char *at = strchr(line, ':'); /* the head's lines have none */
        if (at == NULL || sscanf(line, " %63[^: ]", out->name) != 1) {
            continue;
        }
        at++;
        for (size_t i = 0; i < RF_COUNTERS_NUMBERS; i++) {
            out->numbers[i] = strtoull(at, &at, 10);
        }
        return true;
    }
    return false;
}

static void read_interfaces(const char *root,
                            const struct rf_msg_interface *interfaces, size_t n,
                            struct rf_msg_network *out)
{
    struct rf_counters_line line;
    const uint64_t *of = line.numbers;
    FILE *file = rf_counters_open(root);
    while (file != NULL && rf_counters_next(file, &line)) {
        rf_text_clean(line.name, strlen(line.name)); /* as those are */
        if (strcmp(line.name, RF_COUNTERS_LOOPBACK) == 0) {
            out->loopback_bytes = of[SENT_BYTES];
        }
        for (size_t i = 0; i < n; i++) {
            if (strcmp(interfaces[i].name, line.name) == 0) {
                out->interfaces[i].sent_bytes = of[SENT_BYTES];
                out->interfaces[i].received_bytes = of[RECEIVED_BYTES];
                out->interfaces[i].dropped = of[RECEIVED_ERRORS] +
                                             of[RECEIVED_DROPPED] +
                                             of[SENT_ERRORS] + of[SENT_DROPPED];
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* The bytes of a port, "mlx5_0/1"; absent if it cannot be read. */
static uint64_t port_bytes(const char *root, const char *port, const char *what)
{
    const int device = (int)strcspn(port, "/");
    const int64_t words =
        rf_sysfs_number("%s/sys/class/infiniband/%.*s/ports%s/counters/%s",
                        root, device, port, port + device, what);
    return words != RF_ABSENT_I64 ? (uint64_t)words * RDMA_WORD_BYTES
                                  : RF_ABSENT_U64;
}

/* The number below `name` in the head of a table of two lines. */
static uint64_t column(const char *head, const char *line, const char *name)
{
    while (*head != '\0' && *line != '\0') {
        const size_t length = strcspn(head, " \n");
        if (length == strlen(name) && strncmp(head, name, length) == 0) {
            return strtoull(line, NULL, 10);
        }
        head += length + strspn(head + length, " \n");
        line += strcspn(line, " \n");
        line += strspn(line, " \n");
    }
    return RF_ABSENT_U64;
}

static void read_tcp(const char *root, struct rf_msg_network *out)
{
    char *path = rf_xasprintf("%s/proc/net/snmp", root);
    char head[1024], line[1024];
    FILE *file = fopen(path, "re");
    free(path);
    while (file != NULL && fgets(head, sizeof(head), file) != NULL) {
        if (strncmp(head, "Tcp:", strlen("Tcp:")) == 0 &&
            fgets(line, sizeof(line), file) != NULL) {
            out->segments = column(head, line, "OutSegs");
            out->retransmits = column(head, line, "RetransSegs");
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

void rf_counters_read(const char *root,
                      const struct rf_msg_interface *interfaces, size_t n,
                      struct rf_msg_network *out)
{
    rf_schema_init(&rf_msg_network_schema, out);
    out->interfaces = rf_xcalloc(n, sizeof(*out->interfaces));
    out->n_interfaces = n;
    for (size_t i = 0; i < n; i++) {
        struct rf_msg_counted *counted = &out->interfaces[i];
        rf_schema_init(&rf_msg_counted_schema, counted);
        counted->name = rf_xstrdup(interfaces[i].name);
        if (interfaces[i].rdma != NULL) {
            counted->rdma_sent_bytes =
                port_bytes(root, interfaces[i].rdma, "port_xmit_data");
            counted->rdma_received_bytes =
                port_bytes(root, interfaces[i].rdma, "port_rcv_data");
        }
    }
    read_interfaces(root, interfaces, n, out);
    read_tcp(root, out);
}

/* Makes `now` what was counted since `before`. False, and `now` is absent, if
 * that is unknown: the counter fell, or is there only once. */
static bool subtract(uint64_t before, uint64_t *now)
{
    const bool none = before == RF_ABSENT_U64 && *now == RF_ABSENT_U64;
    const bool known =
        before != RF_ABSENT_U64 && *now != RF_ABSENT_U64 && *now >= before;
    *now = known ? *now - before : RF_ABSENT_U64;
    return known || none;
}

/* Of a NIC all bytes are known or none: the greater of two counters would be
 * too low without one of them. */
static void subtract_interface(const struct rf_msg_counted *before,
                               struct rf_msg_counted *now)
{
    const bool known =
        now->rdma_sent_bytes != RDMA_LAST_BYTES &&
        now->rdma_received_bytes != RDMA_LAST_BYTES &&
        subtract(before->sent_bytes, &now->sent_bytes) &&
        subtract(before->received_bytes, &now->received_bytes) &&
        subtract(before->rdma_sent_bytes, &now->rdma_sent_bytes) &&
        subtract(before->rdma_received_bytes, &now->rdma_received_bytes);
    if (!known) {
        now->sent_bytes = now->received_bytes = RF_ABSENT_U64;
        now->rdma_sent_bytes = now->rdma_received_bytes = RF_ABSENT_U64;
    }
    (void)subtract(before->dropped, &now->dropped);
}

static bool has_counters(const struct rf_msg_counted *counted)
{
    return counted->sent_bytes != RF_ABSENT_U64 ||
           counted->rdma_sent_bytes != RF_ABSENT_U64;
}

void rf_counters_since(const struct rf_msg_network *before,
                       struct rf_msg_network *now)
{
    const size_t n = RF_MIN(now->n_interfaces, before->n_interfaces);
    size_t kept = 0;
    for (size_t i = 0; i < now->n_interfaces; i++) {
        struct rf_msg_counted *counted = &now->interfaces[i];
        if (i < n &&
            (has_counters(&before->interfaces[i]) || has_counters(counted))) {
            subtract_interface(&before->interfaces[i], counted);
            now->interfaces[kept++] = *counted;
        } else {
            rf_schema_free(&rf_msg_counted_schema, counted);
        }
    }
    now->n_interfaces = kept;
    (void)subtract(before->loopback_bytes, &now->loopback_bytes);
    (void)subtract(before->segments, &now->segments);
    (void)subtract(before->retransmits, &now->retransmits);
}
