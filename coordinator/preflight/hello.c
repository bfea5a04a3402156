/* Comparing nodes. See hello.h. */
#include "coordinator/preflight/hello.h"

#include <string.h>

#include "common/version.h"

#define UNKNOWN "unknown" /* built outside of git */

static bool has_boot_id(const struct rf_msg_hello *hello)
{
    return hello != NULL && hello->boot_id != NULL && hello->boot_id[0] != '\0';
}

bool rf_hello_same_machine(const struct rf_msg_hello *a,
                           const struct rf_msg_hello *b)
{
    return has_boot_id(a) && has_boot_id(b) &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

bool rf_hello_apart(const struct rf_msg_hello *a, const struct rf_msg_hello *b)
{
    if (!has_boot_id(a) || !has_boot_id(b)) {
        return false;
    }
    return !rf_hello_same_machine(a, b) ||
           (a->network != RF_ABSENT_U64 && b->network != RF_ABSENT_U64 &&
            a->network != b->network);
}

bool rf_hello_offers(const struct rf_msg_hello *hello, const char *method,
                     const char **why)
{
    *why = "unknown to its worker";
    for (size_t i = 0; i < hello->methods.n; i++) {
        const struct rf_text_pair *pair = &hello->methods.list[i];
        if (strcmp(pair->key, method) == 0) {
            *why = pair->value;
        }
    }
    return *why == NULL;
}

/* Whether two builds or versions differ. Two unknown ones never do; a single
 * unknown one does only with `strict`. */
static bool differ(const char *a, const char *b, bool strict)
{
    bool known = strcmp(a, UNKNOWN) != 0 && strcmp(b, UNKNOWN) != 0;
    return (strict || known) && strcmp(a, b) != 0;
}

enum rf_status rf_hello_check_build(const struct rf_msg_hello *hello,
                                    bool strict, struct rf_err *err)
{
    const char *version = hello->version != NULL ? hello->version : UNKNOWN;
    const char *build = hello->build != NULL ? hello->build : UNKNOWN;
    if (!differ(version, rf_version(), strict) &&
        !differ(build, rf_build(), strict)) {
        return RF_OK;
    }
    if (!differ(version, rf_version(), false) &&
        !differ(build, rf_build(), false)) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "its worker is %.40s (%.60s), refit-coord is %s "
                          "(%s): cannot tell if the builds are the same; build "
                          "both from the same git checkout, or omit --strict",
                          version, build, rf_version(), rf_build());
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "its worker is %.40s (%.60s), refit-coord is %s (%s): "
                      "figures and plans may differ; install the same build on "
                      "all nodes, for instance with launch.deploy",
                      version, build, rf_version(), rf_build());
}
