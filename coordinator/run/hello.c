/* Comparing nodes. See hello.h. */
#include "coordinator/run/hello.h"

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

/* Of two that are not known nothing is said; strictly, one is enough. */
static bool differ(const char *a, const char *b, bool strict)
{
    bool known = strcmp(a, UNKNOWN) != 0 && strcmp(b, UNKNOWN) != 0;
    return (strict || known) && strcmp(a, b) != 0;
}

enum rf_status rf_hello_check_build(const json_t *hello, bool strict,
                                    struct rf_err *err)
{
    const char *version = text_or_unknown(hello, "version");
    const char *build = text_or_unknown(hello, "build");
    if (!differ(version, rf_version(), strict) &&
        !differ(build, rf_build(), strict)) {
        return RF_OK;
    }
    if (!differ(version, rf_version(), false) &&
        !differ(build, rf_build(), false)) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "its worker is %.40s (%.60s), refit-coord is %s "
                          "(%s): cannot tell whether they are of the same "
                          "build; build both from the same git checkout, or "
                          "leave out --strict",
                          version, build, rf_version(), rf_build());
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "its worker is %.40s (%.60s), refit-coord is %s (%s): "
                      "figures and plans may differ; install the same build on "
                      "all nodes, for instance with launch.deploy",
                      version, build, rf_version(), rf_build());
}
