/* See configured.h. */
#include "tests/lib/configured.h"

#include <check.h>
#include <string.h>

void configured(const char *text, struct rf_config **config,
                struct rf_model **model)
{
    struct rf_err err = {0};
    json_t *document = NULL;
    struct rf_jnode node;
    ck_assert_msg(
        rf_json_parse(text, strlen(text), "c.json", &document, &err) == RF_OK,
        "%s", err.text);
    ck_assert_msg(rf_config_from_json(document, "c.json", true, config, &err) ==
                      RF_OK,
                  "%s", err.text);
    node = rf_jnode_root((*config)->model, "c.json");
    ck_assert_msg(rf_model_from_json(&node, model, &err) == RF_OK, "%s",
                  err.text);
}
