/*
 * Names of the files of method disk. They hold a tag made from the attempt's
 * data key, so that attempts never meet and names cannot be guessed.
 */
#ifndef RF_TRANSPORT_FILE_NAMES_H
#define RF_TRANSPORT_FILE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "transport/method.h"

#define RF_FILE_TAG_SIZE 17
#define RF_FILE_PATH_SIZE 4096

/* False when OpenSSL fails. */
bool rf_file_tag(const uint8_t key[RF_DATA_KEY_BYTES],
                 char out[RF_FILE_TAG_SIZE]) RF_MUST_CHECK;

/* The path of a rank's data or ledger; false when it is too long. */
bool rf_file_path(const char *folder, const char *tag, uint32_t rank,
                  bool ledger, char out[RF_FILE_PATH_SIZE]) RF_MUST_CHECK;

/* Removes both names of a rank, if they are there. */
void rf_file_remove(const char *folder, const char *tag, uint32_t rank);

#endif
