/* Starting programs that the terminal's and our signals do not reach, and what
 * may keep a program or a thread from starting. */
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

/* Starts `n` threads at once and ends them: 0, or the errno of one that could
 * not start. For use before libraries that end the process where theirs
 * cannot. */
int rf_spawn_try_threads(unsigned n);

/* For a message: what to look at where a program or a thread could not start by
 * errno `failed`, " (see ...)", or "". */
const char *rf_spawn_limits(int failed);

#endif
