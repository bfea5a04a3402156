/* Megatron-LM's command lines in test code. */
#ifndef RF_TESTS_MEGATRON_LAB_H
#define RF_TESTS_MEGATRON_LAB_H

#include "coordinator/commands/cli.h"

/* The smallest line that works, without a mode. */
#define MEGATRON_SMALL                                                         \
    "--num-layers 4 --hidden-size 64 --num-attention-heads 8 "                 \
    "--seq-length 32 --max-position-embeddings 48 --vocab-size 200 "           \
    "--refit-method gloo "

/* A line of flags separated by single blanks, whose strings live until the next
 * call; *argc and argv (NULL: of no interest) get what is left. */
enum rf_status megatron_take(const char *line, struct rf_megatron_args *args,
                             int *argc, char ***argv, struct rf_err *err);

/* The same through the whole command line, "refit-coord megatron ...". */
enum rf_status megatron_cli(const char *line, struct rf_cli *cli,
                            struct rf_err *err);

/* The cluster file of a line; fails the test when it is refused. */
json_t *megatron_cluster(const char *fmt, ...) RF_PRINTF(1, 2);

/* The error of a line, valid until the next call; fails the test when there is
 * none. */
const char *megatron_error(const char *line);

#endif
