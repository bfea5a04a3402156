/* Words of a POSIX shell's command line. */
#ifndef RF_COMMON_SHELL_H
#define RF_COMMON_SHELL_H

#include "common/compiler.h"

/* `word` quoted for a POSIX shell: unchanged if it has no special characters,
 * else in single quotes. malloc'ed. */
char *rf_shell_word(const char *word);

#endif
