/* Versions of libraries. See versions.h. */
#include "coordinator/commands/versions.h"

#include <libssh/libssh.h>
#include <openssl/crypto.h>
#include <uv.h>

json_t *rf_library_versions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "libuv", uv_version_string(),
                     "libssh", ssh_version(0), "openssl",
                     OpenSSL_version(OPENSSL_VERSION), "jansson",
                     jansson_version_str());
}
