/*
 * Names of files in shared folders that are not to outlive an attempt:
 * refit-<label>-<number>.<kind>. The label says whose they are,
 * "<node>.<boot>.<pid>.<ticks>.<tag>": the node (of its host name, machine id
 * and process ids' name space), how it was booted, its agent with the time when
 * that started, and a tag made from the attempt's data key, so that attempts
 * never meet and names cannot be guessed. By it the next run on a node knows
 * what nobody has removed there, because agents were killed or the power was
 * lost, and the other agents of a run what one that was lost had there. Signs
 * (worker/agent/folder_signs.h) have names without a label; it is their
 * content.
 */
#ifndef RF_TRANSPORT_DISK_DISK_NAMES_H
#define RF_TRANSPORT_DISK_DISK_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/compiler.h"
#include "transport/method/method.h"

#define RF_DISK_OWNER_SIZE 63
#define RF_DISK_LABEL_SIZE 80
#define RF_DISK_PATH_SIZE 4096

enum rf_disk_kind {
    RF_DISK_DATA, /* of method disk; the number is the rank's */
    RF_DISK_LEDGER,
    RF_DISK_EXPORT, /* a file of a model before it has its name */
};

/* The part of labels before the tag. False when OpenSSL fails. */
bool rf_disk_owner(pid_t agent, char out[RF_DISK_OWNER_SIZE]) RF_MUST_CHECK;

/* The label of the files of this node's ranks, whose agent is process `agent`.
 * False when OpenSSL fails. */
bool rf_disk_label(const uint8_t key[RF_DATA_KEY_BYTES], pid_t agent,
                   char out[RF_DISK_LABEL_SIZE]) RF_MUST_CHECK;

/* Whether a label that has come from somewhere is well-formed. */
bool rf_disk_label_is_good(const char *label);

/* Removes from `folder` what agents of this node have left that are gone, be it
 * since before it was booted, and what the owners in `gone` have, on any node.
 * Files of agents that live and of other nodes stay, as does whatever does not
 * have such a name. Signs of the launch `token` are not even opened: its agents
 * leave them just now, and remove them by name. */
void rf_disk_sweep(const char *folder, const char *token, char *const *gone,
                   size_t n_gone);

/* The path of a file; false when it is too long. */
bool rf_disk_path(const char *folder, const char *label, uint32_t number,
                  enum rf_disk_kind kind,
                  char out[RF_DISK_PATH_SIZE]) RF_MUST_CHECK;

/* Removes data and ledger of a rank, if they are there. */
void rf_disk_remove(const char *folder, const char *label, uint32_t rank);

#endif
