/*
 * Shared by the files of the launcher `ssh`. Private to launch_ssh*.c.
 *
 * One thread owns one session from ssh_new() to ssh_free(); the loop's thread
 * never calls libssh. They share a job: the thread posts events to it and the
 * loop takes them. The loop asks the thread to stop; when that is overdue, it
 * shuts down the connection's socket under the thread, which ends any call that
 * waits for the peer. A thread stuck elsewhere (name resolution, a key agent)
 * is left behind: the job lives until both sides release it.
 */
#ifndef RF_COORDINATOR_LAUNCH_SSH_LAUNCH_SSH_H
#define RF_COORDINATOR_LAUNCH_SSH_LAUNCH_SSH_H

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/sftp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "coordinator/launch/launch_internal.h"

#define RF_SSH_TRIES 4
#define RF_SSH_DEPLOY_S 120 /* extra time to copy the worker */

enum rf_ssh_event_kind {
    RF_SSH_NOTE,
    RF_SSH_STDERR,
    RF_SSH_DEADLINE, /* the thread's new deadline; number 0: none */
    RF_SSH_STREAM,   /* the agent runs; text: the head's address or NULL */
    /* Last event: the session is gone, the thread is about to return. */
    RF_SSH_FAIL, /* before RF_SSH_STREAM */
    RF_SSH_EXIT, /* after it; number: status, text: signal */
};

struct rf_ssh_event {
    struct rf_ssh_event *next;
    enum rf_ssh_event_kind kind;
    int64_t number;
    char *text;         /* owned, may be NULL */
    enum rf_status why; /* of RF_SSH_FAIL */
};

/* In order of force. */
enum rf_ssh_stop {
    RF_SSH_RUN,
    RF_SSH_STOP, /* end the agent's input; kill it after a grace */
    RF_SSH_KILL, /* kill the agent now */
    RF_SSH_CUT,  /* end the connection now */
};

struct rf_ssh_job {
    /* Set before the thread starts, then only read. */
    char *host, *user, *identity, *pin, *worker;
    char *place;    /* the node in cluster.json: "nodes[3]" */
    char *host_key; /* the key that sets `host`: "nodes[3].hostname" */
    char *wrap;     /* words before the worker, see launch_internal.h */
    char *known_hosts, *ssh_config, *local_worker;
    uint32_t port, timeout_s;
    uint32_t grace_ms;
    uint32_t limit_s; /* the thread's: length of its deadline */
    bool use_ssh_config, accept_new, deploy;

    int stream_fd; /* the thread's end of the caller's stream */
    int wake_fd;   /* eventfd: look at `stop` */
    atomic_int stop;
    int64_t deadline_ns; /* of the thread; 0: none */
    int proxy_errors;    /* of the thread: ProxyCommand's stderr, or -1 */

    pthread_mutex_t lock; /* for all below */
    struct rf_ssh_event *first, **end;
    unsigned lines_waiting, lines_dropped;
    uv_async_t *async;  /* NULL once the loop's side has released the job */
    int guard_fd;       /* second descriptor of the connection, or -1 */
    pid_t proxy;        /* ProxyCommand's process group, or 0 */
    uint32_t agent_pid; /* on the node; 0: not known */
    uint64_t agent_start_ticks;
    unsigned references;
};

/* --- launch_ssh_job.c ----------------------------------------------------- */

struct rf_ssh_job *rf_ssh_job_create(const struct rf_launch_order *order);
void rf_ssh_job_release(struct rf_ssh_job *job);
void rf_ssh_event_free(struct rf_ssh_event *event);

/* Called by the thread. */
void rf_ssh_post(struct rf_ssh_job *job, enum rf_ssh_event_kind kind,
                 int64_t number, const char *text);
void rf_ssh_post_fail(struct rf_ssh_job *job, const struct rf_err *why);
void rf_ssh_note(struct rf_ssh_job *job, const char *fmt, ...) RF_PRINTF(2, 3);
/* Sets the deadline, `seconds` from now; 0: none. */
void rf_ssh_set_deadline(struct rf_ssh_job *job, uint32_t seconds);
int64_t rf_ssh_left_ms(const struct rf_ssh_job *job); /* until the deadline */
/* RF_ERR_ABORTED or RF_ERR_TIMEOUT when the thread must give up. */
enum rf_status rf_ssh_check(const struct rf_ssh_job *job, const char *what,
                            struct rf_err *err) RF_MUST_CHECK;
/* Waits for `events` on `fd` (-1: none), for wake_fd, or for `ms`; true when fd
 * is ready. */
bool rf_ssh_wait(struct rf_ssh_job *job, int fd, short events, int64_t ms);
/* Gives the loop a duplicate of `fd` to shut down, and the proxy to kill. */
void rf_ssh_guard(struct rf_ssh_job *job, int fd, pid_t proxy);
/* Takes both back; kills and reaps the proxy. */
void rf_ssh_unguard(struct rf_ssh_job *job);

/* Called by the loop: ends any call that waits for the peer. */
void rf_ssh_cut(struct rf_ssh_job *job);

/* --- launch_ssh_thread.c -------------------------------------------------- */

void rf_ssh_thread(void *job); /* the body of the thread */

/* --- launch_ssh_connect.c ------------------------------------------------- */

/* Gives a connected blocking TCP socket on which an SSH server has begun to
 * speak. Sets *retry if the server closed before that or says that it has too
 * many connections. */
enum rf_status rf_ssh_connect_tcp(struct rf_ssh_job *job, const char *host,
                                  unsigned port, int *fd, bool *retry,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Waits until an SSH server begins to speak on `fd`; *retry as above. `where`
 * names the place to check if none does: "ProxyCommand". */
enum rf_status rf_ssh_await_banner(struct rf_ssh_job *job, int fd,
                                   const char *where, bool *retry,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_child.c --------------------------------------------------- */

/* Starts a program, found in PATH, with these descriptors as its standard
 * streams; `in` < 0: no input. Returns 0 or an errno. */
int rf_ssh_spawn(const char *const argv[], int in, int out, int errors,
                 pid_t *pid);

/* Captures a program's standard output (owned by the caller).
 * RF_ERR_UNSUPPORTED if there is no such program, RF_ERR_CONFIG with its error
 * output if it fails; `what` is for errors. The program is killed when the
 * job's time is over or the launch is stopped. */
enum rf_status rf_ssh_capture(struct rf_ssh_job *job, const char *what,
                              const char *const argv[], char **out,
                              struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_config.c -------------------------------------------------- */

struct rf_ssh_texts {
    char **list;
    size_t n, cap;
};

/* Settings of a host, from cluster.json and the ssh config. NULL: not set. */
struct rf_ssh_settings {
    const char *name; /* as written by the user; borrowed */
    char *host_name, *user;
    unsigned port;
    char *proxy_jump, *proxy_command; /* at most one is set */
    struct rf_ssh_texts identities;   /* empty: the default files */
    struct rf_ssh_texts certificates; /* empty: KEY-cert.pub of each key */
    struct rf_ssh_texts known_hosts, global_known_hosts; /* paths */
    char *known_hosts_command;
    char *identity_agent; /* NULL: $SSH_AUTH_SOCK */
    char *host_key_alias;
    char *options[7];  /* see rf_ssh_set_options() */
    char ignored[256]; /* "AddressFamily, BindAddress" */
};

/* Asks ssh(1), within the job's time. RF_ERR_CONFIG if it rejects the config.
 * Free *out also after an error. */
enum rf_status rf_ssh_read_config(struct rf_ssh_job *job,
                                  struct rf_ssh_settings *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Parses the output of `ssh -G`, and modifies it. */
enum rf_status rf_ssh_take_config(char *answer, struct rf_ssh_settings *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Sets the options of libssh: algorithms, compression. */
enum rf_status rf_ssh_set_options(const struct rf_ssh_settings *settings,
                                  ssh_session session,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_settings_free(struct rf_ssh_settings *settings);

/* The host's name in known_hosts files, without its port. */
const char *rf_ssh_known_name(const struct rf_ssh_settings *settings);

struct rf_ssh_token {
    char letter; /* of "%h"; 0: end of list */
    const char *text;
};

/* Replaces the tokens of `pattern`, the value of setting `what`: those of the
 * host and `more` (may be NULL). `variables`: also "${NAME}", from the
 * environment. The caller owns *out. */
enum rf_status rf_ssh_expand(const struct rf_ssh_settings *settings,
                             const char *what, const char *pattern,
                             bool variables, const struct rf_ssh_token *more,
                             char **out, struct rf_err *err) RF_MUST_CHECK;

/* `path` with a leading "~/" replaced; owned by the caller. */
char *rf_ssh_expand_home(const char *path);

/* --- launch_ssh_proxy.c --------------------------------------------------- */

/* Turns ProxyJump `jumps` into a proxy command with ssh(1), which reads
 * `config` unless it is NULL. The caller owns *out. */
enum rf_status rf_ssh_jump_command(const char *config, const char *jumps,
                                   char **out,
                                   struct rf_err *err) RF_MUST_CHECK;

struct rf_ssh_proxy {
    int fd;      /* socket to the command */
    pid_t group; /* its process group */
    int errors;  /* non-blocking pipe: its standard error */
};

/* Starts `command` after expanding its tokens. */
enum rf_status rf_ssh_connect_proxy(const struct rf_ssh_settings *settings,
                                    const char *command,
                                    struct rf_ssh_proxy *out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_session.c ------------------------------------------------- */

/* libssh's text for the last failed call. If libssh has nothing to say, it
 * keeps the text of an earlier failure, so call rf_ssh_forget() before the
 * calls. */
void rf_ssh_forget(ssh_session session);
const char *rf_ssh_reason(ssh_session session);

/* Opens a channel on which nothing runs yet; release it with
 * ssh_channel_free(). */
enum rf_status rf_ssh_open_channel(ssh_session session, ssh_channel *out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_known.c --------------------------------------------------- */

/* The known keys of a host: the lines of all files and the output of
 * KnownHostsCommand, in one unnamed file. */
struct rf_ssh_known {
    int fd; /* -1: none yet */
    char path[32];
    char name[300];    /* the server's name in known_hosts files */
    const char *first; /* the file to add keys to; borrowed, or NULL */
    const struct rf_ssh_settings *settings;
};

/* Close *out also after an error. */
enum rf_status rf_ssh_gather_known(struct rf_ssh_job *job,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_ssh_known *out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_known_close(struct rf_ssh_known *known);
/* Call before the key exchange: makes the session ask for a known key type. */
enum rf_status rf_ssh_use_known(const struct rf_ssh_known *known,
                                ssh_session session,
                                struct rf_err *err) RF_MUST_CHECK;
/* Adds the output of KnownHostsCommand, if set, about a key; `type` NULL: there
 * is no key yet. */
enum rf_status rf_ssh_known_ask(struct rf_ssh_job *job,
                                const struct rf_ssh_known *known,
                                const char *type, const char *fingerprint,
                                const char *base64,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_known_add(const struct rf_ssh_known *known, const char *type,
                      const char *base64);
/* Replaces all lines by those of one file. */
void rf_ssh_known_only(const struct rf_ssh_known *known, const char *path);
/* The files in ssh's order; NULL: no more. */
const char *rf_ssh_known_file(const struct rf_ssh_known *known, size_t index);

/* --- launch_ssh_hostkey.c ------------------------------------------------- */

/* Our own verdict on the key of the connected server. */
enum rf_status rf_ssh_check_host_key(struct rf_ssh_job *job,
                                     ssh_session session,
                                     struct rf_ssh_known *known,
                                     struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_auth.c ---------------------------------------------------- */

enum rf_status rf_ssh_authenticate(struct rf_ssh_job *job, ssh_session session,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_deploy.c -------------------------------------------------- */

/* Copies job->local_worker to the node unless it is there; *path (owned by the
 * caller) is what to execute. The session cannot be used for anything else
 * afterwards. */
enum rf_status rf_ssh_deploy(struct rf_ssh_job *job, ssh_session session,
                             char **path, struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_sftp.c ---------------------------------------------------- */

/* An SFTP connection to a server. */
struct rf_ssh_sftp {
    ssh_session session;
    ssh_channel channel; /* of sftp, once that exists */
    sftp_session sftp;
};

/* Close *out also after an error. */
enum rf_status rf_ssh_sftp_open(ssh_session session, struct rf_ssh_sftp *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_sftp_close(struct rf_ssh_sftp *sftp);

/* Explains `error` (sftp_get_error()) of a failed call to `what` ("create") the
 * absolute `path`; a folder's ends in a slash. SFTP distinguishes few causes,
 * so this asks the server for more. */
enum rf_status rf_ssh_sftp_failed(const struct rf_ssh_sftp *sftp, int error,
                                  const char *what, const char *path,
                                  struct rf_err *err);

/* --- launch_ssh_exit.c ---------------------------------------------------- */

struct rf_ssh_exit {
    struct ssh_channel_callbacks_struct callbacks;
    bool known;   /* reported by the server */
    int status;   /* -1: signal, or not known */
    char *signal; /* owned, or NULL */
};

/* Call before the command is executed; `end` must not move until
 * rf_ssh_exit_unwatch(). */
void rf_ssh_exit_watch(struct rf_ssh_exit *end, ssh_channel channel);
void rf_ssh_exit_unwatch(struct rf_ssh_exit *end, ssh_channel channel);

/* --- launch_ssh_kill.c ---------------------------------------------------- */

#define RF_SSH_KILL_MS 3000 /* time limit of killing an agent */

enum rf_ssh_kill_state {
    RF_SSH_KILL_IDLE,
    RF_SSH_KILL_OPENING,
    RF_SSH_KILL_ASKING,
    RF_SSH_KILL_RUNNING,
    RF_SSH_KILL_OVER,
};

/* The killing of one agent; zero-initialised. */
struct rf_ssh_kill {
    enum rf_ssh_kill_state state;
    uint32_t pid; /* 0: unknown: no HELLO yet, or a wrap */
    ssh_channel channel;
    struct rf_ssh_exit end; /* of the command */
    char command[640];
    char failure[256]; /* why it failed, or "" */
};

/* Begins to kill the agent through a separate channel on `session`, which is
 * non-blocking. */
void rf_ssh_kill_begin(struct rf_ssh_kill *kill, struct rf_ssh_job *job,
                       ssh_session session);
/* Continues as far as possible without waiting. */
void rf_ssh_kill_go_on(struct rf_ssh_kill *kill, ssh_session session);
/* Why the agent may still be alive; NULL if the command ended as it should, or
 * was not begun. */
const char *rf_ssh_kill_failure(const struct rf_ssh_kill *kill);
void rf_ssh_kill_free(struct rf_ssh_kill *kill);

/* --- launch_ssh_pump.c ---------------------------------------------------- */

/* How the agent ended, as for on_exit. */
struct rf_ssh_outcome {
    int status;
    char *signal; /* owned by the caller */
};

/* Executes `command` on a new channel, posts RF_SSH_STREAM when it runs and
 * carries bytes until the end. Fails only before the stream is up. */
enum rf_status rf_ssh_run(struct rf_ssh_job *job, ssh_session session,
                          const char *command, struct rf_ssh_outcome *out,
                          struct rf_err *err) RF_MUST_CHECK;
/* Turns the proxy's standard error into notes. */
void rf_ssh_drain_proxy(struct rf_ssh_job *job);

#endif
