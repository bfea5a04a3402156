/* Comparing nodes. See hello.h. */
#include "coordinator/hello.h"

#include <string.h>

#include "common/version.h"

#define UNKNOWN "unknown" /* built outside of git */

bool rf_hello_same_machine(const json_t *a, const json_t *b)
{
    const char *x = json_string_value(json_object_get(a, "boot_id"));
    const char *y = json_string_value(json_object_get(b, "boot_id"));
    return x != NULL && y != NULL && x[0] != '\0' && strcmp(x, y) == 0;
}

static const char *text_or_unknown(const json_t *hello, const char *key)
{
    const char *text = json_string_value(json_object_get(hello, key));
    return text != NULL ? text : UNKNOWN;
}

static bool differ(const char *a, const char *b)
{
    return strcmp(a, UNKNOWN) != 0 && strcmp(b, UNKNOWN) != 0 &&
           strcmp(a, b) != 0;
}

enum rf_status rf_hello_check_build(const json_t *hello, struct rf_err *err)
{
    const char *version = text_or_unknown(hello, "version");
    const char *build = text_or_unknown(hello, "build");
    if (!differ(version, rf_version()) && !differ(build, rf_build())) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "its worker is %.40s (%.60s), refit-coord is %s (%s): "
                      "figures and plans may differ; install the same build on "
                      "all nodes, for instance with launch.deploy",
                      version, build, rf_version(), rf_build());
}
