/*
 * See network.h. A NIC's bytes in a direction are the greater of its
 * interface's and its RDMA port's counters: depending on driver and link layer,
 * one includes the other or they exclude each other, and a refit goes by one of
 * them.
 */
#include "coordinator/records/network.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "common/stats.h"
#include "common/text.h"
#include "coordinator/records/fields.h"

/* docs/MEASURING.md has the reasons. */
#define USED_SHARE 0.01 /* of the node's bytes */
#define EXTRA_RATIO 1.15
#define EXTRA_BYTES 1e6
#define REPEATED_PERCENT 0.01
#define REPEATED_LEAST 10
#define JUMBO_MTU 9000 /* where none is known */
#define COUNT_MAX 1e18 /* a file may come from anyone */

/* Names of the fields of a direction. */
struct direction {
    const char *planned, *seen, *rdma;
};
static const struct direction sent = {"planned_sent_bytes", "sent_bytes",
                                      "rdma_sent_bytes"};
static const struct direction received = {
    "planned_received_bytes", "received_bytes", "rdma_received_bytes"};

/* One node of a record. */
struct node {
    const json_t *iterations;
    size_t at; /* its index in their `network` */
    const char *host;
    const json_t *facts; /* its entry of `environment` */
};

static double nic_bytes(const json_t *nic, const struct direction *way)
{
    return RF_MAX(rf_result_figure(nic, NULL, way->seen),
                  rf_result_figure(nic, NULL, way->rdma));
}

static double planned_in(const json_t *entry, const struct direction *way)
{
    return rf_result_figure(entry, NULL, way->planned);
}

static double seen_in(const json_t *entry, const struct direction *way)
{
    const json_t *nic;
    double sum = 0;
    size_t i;
    json_array_foreach (json_object_get(entry, "interfaces"), i, nic) {
        sum += nic_bytes(nic, way);
    }
    return sum;
}

static bool knows_all(const json_t *entry)
{
    const json_t *nic;
    double bytes;
    size_t i;
    json_array_foreach (json_object_get(entry, "interfaces"), i, nic) {
        if (!rf_result_number(nic, NULL, sent.seen, &bytes) &&
            !rf_result_number(nic, NULL, sent.rdma, &bytes)) {
            return false;
        }
    }
    return true;
}

/* What an iteration has of a node; NULL: nothing, or the bytes of some NIC are
 * unknown. */
static const json_t *entry_of(const struct node *node, const json_t *iteration)
{
    const json_t *entry =
        json_array_get(json_object_get(iteration, "network"), node->at);
    return strcmp(rf_result_text(entry, NULL, "host"), node->host) == 0 &&
                   knows_all(entry)
               ? entry
               : NULL;
}

static double median_of(const struct node *node, const struct direction *way,
                        double (*figure)(const json_t *entry,
                                         const struct direction *way))
{
    double *values =
        rf_xcalloc(json_array_size(node->iterations) + 1, sizeof(*values));
    double median;
    size_t i, n = 0;
    const json_t *iteration;
    json_array_foreach (node->iterations, i, iteration) {
        const json_t *entry = entry_of(node, iteration);
        if (entry != NULL) {
            values[n++] = figure(entry, way);
        }
    }
    median = rf_stats_median(values, n);
    free(values);
    return median;
}

/* The bytes that each of `nics` carried in all iterations. Caller frees. */
static double *carried(const struct node *node, const json_t *nics)
{
    const size_t n = json_array_size(nics);
    double *bytes = rf_xcalloc(n + 1, sizeof(*bytes));
    const json_t *iteration, *nic;
    size_t i, k;
    json_array_foreach (node->iterations, i, iteration) {
        json_array_foreach (
            json_object_get(entry_of(node, iteration), "interfaces"), k, nic) {
            const json_t *name = json_object_get(nic, "name");
            size_t at = k; /* in the same order, but some may be missing */
            while (at < n &&
                   !json_equal(name, json_object_get(json_array_get(nics, at),
                                                     "name"))) {
                at++;
            }
            bytes[at] += nic_bytes(nic, &sent) + nic_bytes(nic, &received);
        }
    }
    return bytes;
}

/* Whether both have the same kind and the same known speed. */
static bool are_alike(const json_t *a, const json_t *b)
{
    const json_t *speed = json_object_get(a, "speed_mbit");
    return json_is_integer(speed) &&
           json_equal(speed, json_object_get(b, "speed_mbit")) &&
           json_equal(json_object_get(a, "kind"), json_object_get(b, "kind"));
}

/* Names of NICs that carried a share of the node's bytes, and of those that did
 * not and are like the busiest. */
struct nics {
    json_t *used, *idle;
};

static struct nics nics_of(const struct node *node)
{
    const json_t *nics = json_object_get(node->facts, "interfaces"), *nic;
    double *bytes = carried(node, nics), all = 0;
    const struct nics out = {json_array(), json_array()};
    size_t i, busiest = 0;
    json_array_foreach (nics, i, nic) {
        all += bytes[i];
        busiest = bytes[i] > bytes[busiest] ? i : busiest;
    }
    json_array_foreach (nics, i, nic) {
        json_t *name = json_object_get(nic, "name");
        if (bytes[i] > USED_SHARE * all) {
            json_array_append(out.used, name);
        } else if (all > 0 && are_alike(nic, json_array_get(nics, busiest))) {
            json_array_append(out.idle, name);
        }
    }
    free(bytes);
    return out;
}

static json_t *count_json(double count)
{
    return json_integer((json_int_t)RF_MIN(count, COUNT_MAX));
}

/* What a packet holds at most. */
static double mtu_of(const struct node *node)
{
    const json_t *nic;
    double most = 0;
    size_t i;
    json_array_foreach (json_object_get(node->facts, "nics"), i, nic) {
        most = RF_MAX(most, rf_result_figure(nic, NULL, "mtu"));
    }
    return most > 0 ? most : JUMBO_MTU;
}

/* What TCP sent in all iterations, and sent again; not `known` if the node sent
 * nothing, or not by TCP. */
struct segments {
    double all, repeated;
    bool known;
};

static struct segments segments_of(const struct node *node)
{
    struct segments out = {0};
    const json_t *iteration;
    double bytes = 0;
    size_t i;
    json_array_foreach (node->iterations, i, iteration) {
        const json_t *entry = entry_of(node, iteration);
        bytes += planned_in(entry, &sent);
        out.all += rf_result_figure(entry, NULL, "segments");
        out.repeated += rf_result_figure(entry, NULL, "retransmits");
    }
    out.known = bytes > 0 && out.all * mtu_of(node) >= bytes / 2;
    return out;
}

#define NODE(M)                                                                \
    M(TEXT, host, REQUIRED, json_string(node->host))                           \
    M(COUNT, planned_sent_bytes, REQUIRED, count_json(to))                     \
    M(COUNT, planned_received_bytes, REQUIRED, count_json(from))               \
    M(COUNT, sent_bytes, REQUIRED, count_json(out_bytes))                      \
    M(COUNT, received_bytes, REQUIRED, count_json(in_bytes))                   \
    M(NUMBER, ratio, REQUIRED,                                                 \
      json_real((out_bytes + in_bytes) / (to + from)))                         \
    M(COUNT, retransmits, NULLABLE,                                            \
      tcp.known ? count_json(tcp.repeated) : NULL)                             \
    M(NUMBER, retransmit_percent, NULLABLE,                                    \
      tcp.known ? json_real(tcp.repeated / tcp.all * 100) : NULL)              \
    M(TEXTS, nics_used, REQUIRED, nics.used)                                   \
    M(TEXTS, nics_idle, REQUIRED, nics.idle)

json_t *rf_network_summary_schema(void)
{
    json_t *out = rf_json_schema_object();
    NODE(RF_DESCRIBE);
    return out;
}

/* NULL: no bytes are planned, or none of the node's iterations is known. */
static json_t *node_json(const struct node *node)
{
    const double to = median_of(node, &sent, planned_in);
    const double from = median_of(node, &received, planned_in);
    const double out_bytes = median_of(node, &sent, seen_in);
    const double in_bytes = median_of(node, &received, seen_in);
    const struct segments tcp = segments_of(node);
    struct nics nics;
    json_t *out;
    if (to + from <= 0) {
        return NULL;
    }
    nics = nics_of(node);
    out = json_object();
    NODE(RF_PUT);
    return out;
}

/* A network namespace, in a text that only its nodes share. Caller frees. */
static char *namespace_of(const json_t *facts)
{
    return rf_xasprintf(
        "%s %lld", rf_result_text(facts, NULL, "boot_id"),
        (long long)json_integer_value(json_object_get(facts, "network")));
}

/* Number of nodes in each network namespace. */
static json_t *count_namespaces(const json_t *environment)
{
    json_t *counts = json_object();
    const json_t *facts;
    size_t i;
    json_array_foreach (environment, i, facts) {
        char *key = namespace_of(facts);
        json_object_set_new(
            counts, key,
            json_integer(json_integer_value(json_object_get(counts, key)) + 1));
        free(key);
    }
    return counts;
}

static bool is_alone(const json_t *namespaces, const json_t *facts)
{
    char *key = namespace_of(facts);
    const bool alone =
        json_integer_value(json_object_get(namespaces, key)) == 1;
    free(key);
    return alone;
}

/* Entries of `environment` by host. */
static json_t *by_host(const json_t *environment)
{
    json_t *out = json_object(), *facts;
    size_t i;
    json_array_foreach (environment, i, facts) {
        json_object_set(out, rf_result_text(facts, NULL, "host"), facts);
    }
    return out;
}

json_t *rf_network_summary_json(const json_t *record)
{
    const json_t *environment = json_object_get(record, "environment");
    const json_t *iterations = json_object_get(record, "iterations"), *entry;
    json_t *namespaces = count_namespaces(environment);
    json_t *nodes = by_host(environment), *list = json_array();
    size_t i;
    json_array_foreach (
        json_object_get(json_array_get(iterations, 0), "network"), i, entry) {
        const char *host = rf_result_text(entry, NULL, "host");
        const struct node node = {iterations, i, host,
                                  json_object_get(nodes, host)};
        if (is_alone(namespaces, node.facts)) {
            json_t *one = node_json(&node);
            if (one != NULL) {
                json_array_append_new(list, one);
            }
        }
    }
    json_decref(nodes);
    json_decref(namespaces);
    return list;
}

/* --- What is conspicuous -------------------------------------------------- */

/* A sentence about the first node for which `judge` has one. */
static char *first_of(const json_t *record, char *(*judge)(const json_t *node))
{
    const json_t *node;
    char *out = NULL;
    size_t i, more = 0;
    json_array_foreach (rf_result_value(record, "summary", "network"), i,
                        node) {
        char *text = judge(node);
        if (text != NULL && out == NULL) {
            rf_text_add(&out, "", "%s on %s", text,
                        rf_result_text(node, NULL, "host"));
        } else {
            more += text != NULL;
        }
        free(text);
    }
    if (more > 0) {
        rf_text_add(&out, " ", "and %zu more node%s", more,
                    more > 1 ? "s" : "");
    }
    return out;
}

static double ratio_of(const json_t *node)
{
    return rf_result_figure(node, NULL, "ratio");
}

/* Weights may go by other ways, such as NVLink between nodes. */
static char *judge_idle(const json_t *node)
{
    const size_t used = json_array_size(json_object_get(node, "nics_used"));
    const size_t idle = json_array_size(json_object_get(node, "nics_idle"));
    return idle > 0 && ratio_of(node) >= 0.5
               ? rf_xasprintf("%zu of %zu used", used, used + idle)
               : NULL;
}

static char *judge_extra(const json_t *node)
{
    const double planned = rf_result_figure(node, NULL, sent.planned) +
                           rf_result_figure(node, NULL, received.planned);
    const double seen = rf_result_figure(node, NULL, sent.seen) +
                        rf_result_figure(node, NULL, received.seen);
    return seen > EXTRA_RATIO * planned + EXTRA_BYTES
               ? rf_xasprintf("%.1f times the planned bytes", ratio_of(node))
               : NULL;
}

static char *judge_repeated(const json_t *node)
{
    const double percent = rf_result_figure(node, NULL, "retransmit_percent");
    return percent >= REPEATED_PERCENT &&
                   rf_result_figure(node, NULL, "retransmits") >= REPEATED_LEAST
               ? rf_xasprintf("%.2g %%", percent)
               : NULL;
}

char *rf_network_idle(const json_t *record)
{
    return first_of(record, judge_idle);
}

char *rf_network_extra(const json_t *record)
{
    return first_of(record, judge_extra);
}

char *rf_network_repeated(const json_t *record)
{
    return first_of(record, judge_repeated);
}
