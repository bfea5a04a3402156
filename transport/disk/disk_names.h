/*
 * Names of files in shared folders that must not outlive an attempt:
 * refit-<label>-<number>.<kind>. The label identifies the owner,
 * "<node>.<boot>.<pid>.<ticks>.<tag>": the node (from its host name, machine id
 * and PID namespace), its boot, its agent with the agent's start time, and a
 * tag derived from the attempt's data key, so that attempts never collide and
 * names cannot be guessed. By the label the next run on a node finds files left
 * by killed agents or a power loss, and the other agents of a run find those of
 * a lost agent. Signs (worker/agent/folder_signs.h) have names without a label;
 * the label is their content.
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
    RF_DISK_EXPORT, /* a file of a model, until it is renamed */
};

/* The part of labels before the tag. False when OpenSSL fails. */
bool rf_disk_owner(pid_t agent, char out[RF_DISK_OWNER_SIZE]) RF_MUST_CHECK;

/* The label of the files of this node's ranks, whose agent is process `agent`.
 * False when OpenSSL fails. */
bool rf_disk_label(const uint8_t key[RF_DATA_KEY_BYTES], pid_t agent,
                   char out[RF_DISK_LABEL_SIZE]) RF_MUST_CHECK;

/* Whether a received label is well-formed. */
bool rf_disk_label_is_good(const char *label);

/* Removes from `folder` the files of this node's dead agents, also from before
 * this boot, and those of the owners in `gone`, on any node. Keeps files of
 * living agents and of other nodes, and files with other names. Does not open
 * signs of the launch `token`: its agents are writing them now, and remove them
 * by name. */
void rf_disk_sweep(const char *folder, const char *token, char *const *gone,
                   size_t n_gone);

/* The path of a file; false if too long. */
bool rf_disk_path(const char *folder, const char *label, uint32_t number,
                  enum rf_disk_kind kind,
                  char out[RF_DISK_PATH_SIZE]) RF_MUST_CHECK;

/* Removes data and ledger of a rank, if present. */
void rf_disk_remove(const char *folder, const char *label, uint32_t rank);

#endif
