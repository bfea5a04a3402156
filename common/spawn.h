/* Starts programs out of reach of the terminal's and our signals, and explains
 * why a program or a thread cannot start. */
#ifndef RF_COMMON_SPAWN_H
#define RF_COMMON_SPAWN_H

#include <spawn.h>

/*
 * Like posix_spawnp(): returns 0 or an errno, and the child in *pid, which the
 * caller reaps. The child leads its own session, has no terminal, blocks no
 * signal, and has default signal handlers.
 */
int rf_spawn_session(pid_t *pid, const char *program,
                     const posix_spawn_file_actions_t *actions,
                     const char *const *argv, char *const *environment);

/* Starts `n` threads at once and ends them. Returns 0, or the errno of the
 * first that could not start. Call it before libraries that end the process
 * when they cannot start their threads. */
int rf_spawn_try_threads(unsigned n);

/* For a message about a program or thread that could not start with errno
 * `failed`: the limits to check, " (see ...)", or "". */
const char *rf_spawn_limits(int failed);

#endif
