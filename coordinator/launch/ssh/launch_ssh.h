/*
 * What the files of the launcher `ssh` share. Private to launch_ssh*.c.
 *
 * One thread owns one session from ssh_new() to ssh_free(); the loop's thread
 * never calls libssh. They share a job: the thread posts events to it and the
 * loop takes them; the loop asks the thread to stop, and when that is overdue
 * shuts the connection's socket down under it, which ends any call that waits
 * for the peer. A thread that is stuck elsewhere (name resolution, a key agent)
 * is left behind: the job lives until both sides have let go of it.
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
#define RF_SSH_DEPLOY_S 120 /* more time when the worker must be copied */

enum rf_ssh_event_kind {
    RF_SSH_NOTE,
    RF_SSH_STDERR,
    RF_SSH_DEADLINE, /* the thread's new deadline; number 0: none */
    RF_SSH_STREAM,   /* the agent runs; text: the head's address or NULL */
    /* The last event: the session is gone, the thread about to return. */
    RF_SSH_FAIL, /* before the stream */
    RF_SSH_EXIT, /* after it; number: status, text: signal */
};

struct rf_ssh_event {
    struct rf_ssh_event *next;
    enum rf_ssh_event_kind kind;
    int64_t number;
    char *text;         /* owned, may be NULL */
    enum rf_status why; /* of RF_SSH_FAIL */
};

/* With rising force. */
enum rf_ssh_stop {
    RF_SSH_RUN,
    RF_SSH_STOP, /* the agent's input ends; after a grace it is killed */
    RF_SSH_KILL, /* the agent, which is known, is killed now */
    RF_SSH_CUT,  /* the connection ends now */
};

struct rf_ssh_job {
    /* Set before the thread starts, then only read. */
    char *host, *user, *identity, *pin, *worker;
    char *place;    /* of the node in cluster.json: "nodes[3]" */
    char *host_key; /* what names `host`: "nodes[3].hostname" */
    char *wrap;     /* words before the worker, see launch_internal.h */
    char *known_hosts, *ssh_config, *local_worker;
    uint32_t port, timeout_s;
    uint32_t grace_ms;
    uint32_t limit_s; /* that the deadline was set by */
    bool use_ssh_config, accept_new, deploy;

    int stream_fd; /* the thread's end of the caller's stream */
    int wake_fd;   /* eventfd: look at `stop` */
    atomic_int stop;
    int64_t deadline_ns; /* the thread's; 0: none */
    int proxy_errors;    /* the thread's: ProxyCommand's complaints, or -1 */

    pthread_mutex_t lock; /* for all below */
    struct rf_ssh_event *first, **end;
    unsigned lines_waiting, lines_dropped;
    uv_async_t *async;  /* NULL once the loop's side has let go */
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

/* For the thread. */
void rf_ssh_post(struct rf_ssh_job *job, enum rf_ssh_event_kind kind,
                 int64_t number, const char *text);
void rf_ssh_post_fail(struct rf_ssh_job *job, const struct rf_err *why);
void rf_ssh_note(struct rf_ssh_job *job, const char *fmt, ...) RF_PRINTF(2, 3);
/* Sets the deadline, `seconds` from now; 0: none. */
void rf_ssh_set_deadline(struct rf_ssh_job *job, uint32_t seconds);
int64_t rf_ssh_left_ms(const struct rf_ssh_job *job); /* of the deadline */
/* RF_ERR_ABORTED or RF_ERR_TIMEOUT when the thread should give up. */
enum rf_status rf_ssh_check(const struct rf_ssh_job *job, const char *what,
                            struct rf_err *err) RF_MUST_CHECK;
/* Waits for `events` on `fd` (or only for time, fd -1), for wake_fd, or `ms`;
 * true when fd is ready. */
bool rf_ssh_wait(struct rf_ssh_job *job, int fd, short events, int64_t ms);
/* Tells the loop what to shut down: a duplicate of `fd` is kept. */
void rf_ssh_guard(struct rf_ssh_job *job, int fd, pid_t proxy);
/* Forgets it; kills and reaps the proxy. */
void rf_ssh_unguard(struct rf_ssh_job *job);

/* For the loop: ends whatever call waits for the peer. */
void rf_ssh_cut(struct rf_ssh_job *job);

/* --- launch_ssh_thread.c -------------------------------------------------- */

void rf_ssh_thread(void *job); /* the body of the thread */

/* --- launch_ssh_connect.c ------------------------------------------------- */

/* A connected blocking TCP socket on which an SSH server has begun to speak.
 * *retry is set when the server closed before that. */
enum rf_status rf_ssh_connect_tcp(struct rf_ssh_job *job, const char *host,
                                  unsigned port, int *fd, bool *retry,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Waits until an SSH server has begun to speak on `fd`. `where` is to be looked
 * at where none does: "ProxyCommand". */
enum rf_status rf_ssh_await_banner(struct rf_ssh_job *job, int fd,
                                   const char *where, bool *retry,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_child.c --------------------------------------------------- */

/* Starts a program, found in PATH, with these descriptors as its standard
 * streams; `in` below 0: no input. 0 or an errno. */
int rf_ssh_spawn(const char *const argv[], int in, int out, int errors,
                 pid_t *pid);

/* Its standard output, the caller's. RF_ERR_UNSUPPORTED where there is no such
 * program, RF_ERR_CONFIG with its complaint where it fails; `what` is for
 * errors. It is killed when the job's time is over or the launch stopped. */
enum rf_status rf_ssh_capture(struct rf_ssh_job *job, const char *what,
                              const char *const argv[], char **out,
                              struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_config.c -------------------------------------------------- */

struct rf_ssh_texts {
    char **list;
    size_t n, cap;
};

/* What holds for a host, of cluster.json and the ssh config. NULL: not set. */
struct rf_ssh_settings {
    const char *name; /* as the user wrote it, borrowed */
    char *host_name, *user;
    unsigned port;
    char *proxy_jump, *proxy_command; /* one of them at most */
    struct rf_ssh_texts identities;   /* none: the usual files */
    struct rf_ssh_texts certificates; /* none: KEY-cert.pub of each key */
    struct rf_ssh_texts known_hosts, global_known_hosts; /* paths */
    char *known_hosts_command;
    char *identity_agent; /* NULL: $SSH_AUTH_SOCK */
    char *host_key_alias;
    char *options[7];  /* see rf_ssh_set_options() */
    char ignored[256]; /* "AddressFamily, BindAddress" */
};

/* Asks ssh(1), within the job's time. RF_ERR_CONFIG where it refuses the
 * config. Free *out also after an error. */
enum rf_status rf_ssh_read_config(struct rf_ssh_job *job,
                                  struct rf_ssh_settings *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Takes the answer of `ssh -G`, which is changed. */
enum rf_status rf_ssh_take_config(char *answer, struct rf_ssh_settings *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* Those that are libssh's alone: algorithms, compression. */
enum rf_status rf_ssh_set_options(const struct rf_ssh_settings *settings,
                                  ssh_session session,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_settings_free(struct rf_ssh_settings *settings);

/* The name that known_hosts files have of the host, but for its port. */
const char *rf_ssh_known_name(const struct rf_ssh_settings *settings);

struct rf_ssh_token {
    char letter; /* of "%h"; 0: the end of a list */
    const char *text;
};

/* Replaces the tokens of `pattern`, of a setting called `what`: those of the
 * host and `more`, which may be NULL. *out is the caller's. */
enum rf_status rf_ssh_expand(const struct rf_ssh_settings *settings,
                             const char *what, const char *pattern,
                             const struct rf_ssh_token *more, char **out,
                             struct rf_err *err) RF_MUST_CHECK;

/* `path` with a leading "~/" replaced; owned by the caller. */
char *rf_ssh_expand_home(const char *path);

/* --- launch_ssh_proxy.c --------------------------------------------------- */

/* The proxy command that is ProxyJump `jumps`, with ssh(1), which is told to
 * read `config` unless that is NULL; *out is the caller's. */
enum rf_status rf_ssh_jump_command(const char *config, const char *jumps,
                                   char **out,
                                   struct rf_err *err) RF_MUST_CHECK;

struct rf_ssh_proxy {
    int fd;      /* a socket to the command */
    pid_t group; /* its processes */
    int errors;  /* a non-blocking pipe: its standard error */
};

/* Starts `command` after expanding its tokens. */
enum rf_status rf_ssh_connect_proxy(const struct rf_ssh_settings *settings,
                                    const char *command,
                                    struct rf_ssh_proxy *out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_session.c ------------------------------------------------- */

/* What libssh says of the call that has just failed. It keeps its text of an
 * earlier one when there is nothing to say, so forget that before the calls. */
void rf_ssh_forget(ssh_session session);
const char *rf_ssh_reason(ssh_session session);

/* A channel on which nothing runs yet, to be given to ssh_channel_free(). */
enum rf_status rf_ssh_open_channel(ssh_session session, ssh_channel *out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_known.c --------------------------------------------------- */

/* What is known of the keys of a host: all files and what KnownHostsCommand
 * says, as one file that has no name. */
struct rf_ssh_known {
    int fd; /* -1: none yet */
    char path[32];
    char name[300];    /* that known_hosts files list the server under */
    const char *first; /* the file that keys are added to, borrowed, or NULL */
    const struct rf_ssh_settings *settings;
};

/* Close *out also after an error. */
enum rf_status rf_ssh_gather_known(struct rf_ssh_job *job,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_ssh_known *out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_known_close(struct rf_ssh_known *known);
/* Before the keys are exchanged: lets the session ask for a kind of key that is
 * known. */
enum rf_status rf_ssh_use_known(const struct rf_ssh_known *known,
                                ssh_session session,
                                struct rf_err *err) RF_MUST_CHECK;
/* Adds what KnownHostsCommand says of a key, if there is one; `type` NULL:
 * before a key is there. */
enum rf_status rf_ssh_known_ask(struct rf_ssh_job *job,
                                const struct rf_ssh_known *known,
                                const char *type, const char *fingerprint,
                                const char *base64,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_known_add(const struct rf_ssh_known *known, const char *type,
                      const char *base64);
/* Forgets all but what that file says. */
void rf_ssh_known_only(const struct rf_ssh_known *known, const char *path);
/* The files in the order that ssh has; NULL: no more. */
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
 * caller) is what to execute. The session is of no other use then. */
enum rf_status rf_ssh_deploy(struct rf_ssh_job *job, ssh_session session,
                             char **path, struct rf_err *err) RF_MUST_CHECK;

/* --- launch_ssh_sftp.c ---------------------------------------------------- */

/* SFTP with a server. */
struct rf_ssh_sftp {
    ssh_session session;
    ssh_channel channel; /* sftp's, once there is one */
    sftp_session sftp;
};

/* Close *out also after an error. */
enum rf_status rf_ssh_sftp_open(ssh_session session, struct rf_ssh_sftp *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_ssh_sftp_close(struct rf_ssh_sftp *sftp);

/* The error, sftp_get_error(), of a call that failed to `what` ("create") the
 * absolute `path`, a folder's with a slash behind it. It tells few causes
 * apart, so the server is asked for more. */
enum rf_status rf_ssh_sftp_failed(const struct rf_ssh_sftp *sftp, int error,
                                  const char *what, const char *path,
                                  struct rf_err *err);

/* --- launch_ssh_exit.c ---------------------------------------------------- */

struct rf_ssh_exit {
    struct ssh_channel_callbacks_struct callbacks;
    bool known;   /* the server has reported it */
    int status;   /* -1: by a signal, or not known */
    char *signal; /* owned, or NULL */
};

/* From before the command is executed until rf_ssh_exit_unwatch(); `end` stays
 * where it is meanwhile. */
void rf_ssh_exit_watch(struct rf_ssh_exit *end, ssh_channel channel);
void rf_ssh_exit_unwatch(struct rf_ssh_exit *end, ssh_channel channel);

/* --- launch_ssh_kill.c ---------------------------------------------------- */

#define RF_SSH_KILL_MS 3000 /* what killing an agent may take */

enum rf_ssh_kill_state {
    RF_SSH_KILL_IDLE,
    RF_SSH_KILL_OPENING,
    RF_SSH_KILL_ASKING,
    RF_SSH_KILL_RUNNING,
    RF_SSH_KILL_OVER,
};

/* The killing of one agent; zeroed before it begins. */
struct rf_ssh_kill {
    enum rf_ssh_kill_state state;
    uint32_t pid;
    ssh_channel channel;
    struct rf_ssh_exit end; /* of the command */
    char command[640];
    char failure[256]; /* why it did not work, or "" */
};

/* Begins to kill the agent through a channel of its own on `session`, which is
 * non-blocking. Does nothing when it is not known which process that is. */
void rf_ssh_kill_begin(struct rf_ssh_kill *kill, struct rf_ssh_job *job,
                       ssh_session session);
/* Goes on with it as far as that is possible without waiting. */
void rf_ssh_kill_go_on(struct rf_ssh_kill *kill, ssh_session session);
/* Why nobody knows that the agent is gone; NULL where the command has ended as
 * it should, or was not begun. */
const char *rf_ssh_kill_failure(const struct rf_ssh_kill *kill);
void rf_ssh_kill_free(struct rf_ssh_kill *kill);

/* --- launch_ssh_pump.c ---------------------------------------------------- */

/* How the agent ended: like on_exit. */
struct rf_ssh_outcome {
    int status;
    char *signal; /* owned by the caller */
};

/* Executes `command` on a new channel, posts RF_SSH_STREAM when it runs and
 * carries bytes until the end. An error is one before the stream. */
enum rf_status rf_ssh_run(struct rf_ssh_job *job, ssh_session session,
                          const char *command, struct rf_ssh_outcome *out,
                          struct rf_err *err) RF_MUST_CHECK;
/* Turns what the proxy said into notes. */
void rf_ssh_drain_proxy(struct rf_ssh_job *job);

#endif
