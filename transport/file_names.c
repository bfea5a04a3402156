/*
 * Names of the files of method disk. See file_names.h. A name that cannot be
 * removed stays: whoever calls is ending anyway.
 */
#include "transport/file_names.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <unistd.h>

#include "common/bytes.h"

bool rf_file_tag(const uint8_t key[RF_DATA_KEY_BYTES],
                 char out[RF_FILE_TAG_SIZE])
{
    static const char what[] = "refit disk files";
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size;
    if (HMAC(EVP_sha256(), key, RF_DATA_KEY_BYTES, (const uint8_t *)what,
             sizeof(what), digest, &size) == NULL) {
        return false;
    }
    rf_hex_encode(digest, (RF_FILE_TAG_SIZE - 1) / 2, out);
    return true;
}

bool rf_file_path(const char *folder, const char *tag, uint32_t rank,
                  bool ledger, char out[RF_FILE_PATH_SIZE])
{
    int n = snprintf(out, RF_FILE_PATH_SIZE, "%s/refit-%s-%" PRIu32 ".%s",
                     folder, tag, rank, ledger ? "ledger" : "data");
    return n > 0 && n < RF_FILE_PATH_SIZE;
}

void rf_file_remove(const char *folder, const char *tag, uint32_t rank)
{
    char path[RF_FILE_PATH_SIZE];
    for (int ledger = 0; ledger < 2; ledger++) {
        if (rf_file_path(folder, tag, rank, ledger != 0, path)) {
            unlink(path);
        }
    }
}
