/*
 * launch.wrap: a command that starts the worker, as `docker exec -i NAME` does
 * in a container. The worker and its option follow as more words, and its
 * standard input and output have to pass through.
 */
#ifndef RF_COORDINATOR_LAUNCH_WRAP_H
#define RF_COORDINATOR_LAUNCH_WRAP_H

#include "coordinator/config/nodes/launch_settings.h"

/* Words that rf_wrap_words() gives at most, with the NULL. */
#define RF_WRAP_WORDS_MAX (RF_LAUNCH_WRAP_MAX + 3)

/* The words of the wrap, "{host}" in them replaced by the node's name, then the
 * worker and its option; NULL at the end. To be given to
 * rf_wrap_free(), which takes NULL, too. */
char **rf_wrap_words(const struct rf_launch_config *how, const char *node,
                     const char *worker, const char *option);
void rf_wrap_free(char **words);

/* The words of the wrap alone for a POSIX shell, each with a space after it; ""
 * without a wrap. malloc'ed. */
char *rf_wrap_prefix(const struct rf_launch_config *how, const char *node);

#endif
