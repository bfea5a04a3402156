/* Words of a POSIX shell's command line. */
#ifndef RF_COMMON_SHELL_H
#define RF_COMMON_SHELL_H

#include "common/compiler.h"

/* `word` as a shell takes it for one word: as it is where nothing in it is
 * special, or else in single quotes. malloc'ed. */
char *rf_shell_word(const char *word);

#endif
