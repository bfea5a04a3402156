/* Starting programs that the terminal's and our signals do not reach. */
#ifndef RF_COMMON_SPAWN_H
#define RF_COMMON_SPAWN_H

#include <spawn.h>

/*
 * As posix_spawnp(): 0 or an errno, and the child in *pid, which the caller
 * reaps. It leads a session of its own, has no terminal, blocks no signal, and
 * handles each as is the default.
 */
int rf_spawn_session(pid_t *pid, const char *program,
                     const posix_spawn_file_actions_t *actions,
                     const char *const *argv, char *const *environment);

#endif
