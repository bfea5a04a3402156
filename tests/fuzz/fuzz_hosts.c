/*
 * Any bytes as a list of hosts, as a host file, and as a path to set: the first
 * byte chooses. Hosts that are accepted make a list of nodes that the reader of
 * cluster files accepts; long ones are skipped, they are slow, not different.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/config.h"

#define MAX_HOSTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char cluster[] =
    "{\"nodes\": [{\"host\": \"a\", \"slots\": 1}, {\"host\": \"b.c\", "
    "\"slots\": 2}], \"model\": {\"tensor\": {\"name\": \"t\", \"shape\": "
    "[8, 8], \"dtype\": \"int32\"}}, \"scenarios\": [{\"name\": \"s=1.x\", "
    "\"train\": {\"layout\": \"fsdp\"}, \"infer\": {\"layout\": \"fsdp\"}}]}";

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_hosts(const struct rf_hosts *hosts)
{
    struct rf_err err;
    struct rf_config *config = NULL;
    json_t *document;
    if (hosts->n > MAX_HOSTS) {
        return;
    }
    document = json_loads(cluster, 0, NULL);
    rf_hosts_place(hosts, document);
    must(rf_config_from_json(document, "c", true, &config, &err) == RF_OK);
    must(config->n_nodes == hosts->n);
    rf_config_destroy(config);
}

static void check_set(const char *text)
{
    struct rf_err err;
    struct rf_config *config = NULL;
    const struct rf_overrides overrides = {.sets = &text, .n_sets = 1};
    json_t *document = json_loads(cluster, 0, NULL);
    if (rf_overrides_set(&overrides, document, "c", &err) != RF_OK) {
        json_decref(document);
        return;
    }
    if (rf_config_from_json(document, "c", true, &config, &err) == RF_OK) {
        rf_config_destroy(config);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err;
    struct rf_hosts hosts = {0};
    char *text;
    if (size == 0) {
        return 0;
    }
    text = rf_xcalloc(1, size);
    memcpy(text, data + 1, size - 1);
    if (data[0] % 3 == 0) {
        check_set(text);
    } else if ((data[0] % 3 == 1
                    ? rf_hosts_parse(text, &hosts, &err)
                    : rf_hosts_parse_file(text, size - 1, "h", &hosts, &err)) ==
               RF_OK) {
        check_hosts(&hosts);
    }
    rf_hosts_free(&hosts);
    free(text);
    return 0;
}
