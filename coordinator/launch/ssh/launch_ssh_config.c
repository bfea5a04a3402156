/*
 * The ssh config as OpenSSH itself resolves it for a host: the output of `ssh
 * -G`, which knows its whole language (patterns, Match exec, Include, quotes,
 * tokens). Without ssh(1) the config is not read, and a note says so; if
 * cluster.json names a config, that is an error.
 *
 * The output has one line per setting, defaults included: the name in lower
 * case, a blank, the value. Unknown ones are skipped. cluster.json has
 * priority: user and port are given to ssh, as on its command line.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define SSH_PORT 22

/* --- The user ------------------------------------------------------------- */

static char *home_folder(void)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    const char *home;
    if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) == 0 &&
        found != NULL) {
        return rf_xstrdup(found->pw_dir);
    }
    home = getenv("HOME");
    return rf_xstrdup(home != NULL ? home : "/");
}

/* The current user's name; "" without a passwd entry: ssh(1) refuses that. */
static char *login_name(void)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    bool known =
        getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) == 0 &&
        found != NULL;
    return rf_xstrdup(known ? found->pw_name : "");
}

char *rf_ssh_expand_home(const char *path)
{
    char *home, *full;
    if (strncmp(path, "~/", 2) != 0) {
        return rf_xstrdup(path);
    }
    home = home_folder();
    full = rf_xasprintf("%s/%s", home, path + 2);
    free(home);
    return full;
}

/* --- Tokens --------------------------------------------------------------- */

static const char *find_token(const struct rf_ssh_token *tokens, char letter)
{
    for (; tokens != NULL && tokens->letter != '\0'; tokens++) {
        if (tokens->letter == letter) {
            return tokens->text;
        }
    }
    return NULL;
}

/* Bytes up to the next token, "%h", or variable, "${NAME}". */
static size_t plain_size(const char *at, bool variables)
{
    size_t size = 0;
    while (at[size] != '\0' && at[size] != '%' &&
           (!variables || strncmp(at + size, "${", 2) != 0)) {
        size++;
    }
    return size;
}

static char *variable(const char *at, size_t size)
{
    char *name = rf_xasprintf("%.*s", (int)size, at), *value = getenv(name);
    free(name);
    return value;
}

static enum rf_status expand(const char *what, const char *pattern,
                             bool variables,
                             const struct rf_ssh_token *const tokens[2],
                             char **out, struct rf_err *err)
{
    char *text = rf_xstrdup("");
    for (const char *at = pattern; *at != '\0';) {
        const size_t size = plain_size(at, variables);
        const char *token = at + size, *next = token, *value = "";
        if (*token == '%') {
            value = token[1] == '%' ? "%" : find_token(tokens[0], token[1]);
            value = value != NULL ? value : find_token(tokens[1], token[1]);
            next += token[1] != '\0' ? 2 : 1;
        } else if (*token == '$') {
            next += strcspn(token, "}");
            value = variable(token + 2, (size_t)(next - token) - 2);
            next += *next != '\0' ? 1 : 0;
        }
        if (value == NULL) {
            free(text);
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "%s of the ssh config: no value for %.*s in \"%.200s\"", what,
                (int)(next - token), token, pattern);
        }
        rf_text_add(&text, "", "%.*s%s", (int)size, at, value);
        at = next;
    }
    *out = text;
    return RF_OK;
}

enum rf_status rf_ssh_expand(const struct rf_ssh_settings *settings,
                             const char *what, const char *pattern,
                             bool variables, const struct rf_ssh_token *more,
                             char **out, struct rf_err *err)
{
    char port[16], uid[16], host[256] = "", brief[256];
    char *home = home_folder(), *login = login_name();
    const struct rf_ssh_token own[] = {{'h', settings->host_name},
                                       {'n', settings->name},
                                       {'p', port},
                                       {'r', settings->user},
                                       {'d', home},
                                       {'u', login},
                                       {'i', uid},
                                       {'l', host},
                                       {'L', brief},
                                       {'k', rf_ssh_known_name(settings)},
                                       {'\0', NULL}};
    const struct rf_ssh_token *const tokens[2] = {own, more};
    enum rf_status status;
    snprintf(port, sizeof(port), "%u", settings->port);
    snprintf(uid, sizeof(uid), "%u", (unsigned)getuid());
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(brief, sizeof(brief), "%.*s", (int)strcspn(host, "."), host);
    status = expand(what, pattern, variables, tokens, out, err);
    free(login);
    free(home);
    return status;
}

const char *rf_ssh_known_name(const struct rf_ssh_settings *settings)
{
    return settings->host_key_alias != NULL ? settings->host_key_alias
                                            : settings->host_name;
}

/* --- The answer of ssh ---------------------------------------------------- */

static void set(char **text, const char *value)
{
    free(*text);
    *text = rf_xstrdup(value);
}

static void add(struct rf_ssh_texts *texts, const char *text)
{
    RF_PUSH(texts->list, texts->n, texts->cap, rf_xstrdup(text));
}

static void free_texts(struct rf_ssh_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        free(texts->list[i]);
    }
    free(texts->list);
    *texts = (struct rf_ssh_texts){0};
}

/* Paths separated by blanks, which paths may also contain: a part that begins
 * with neither "/" nor "~" continues the previous one. */
static void add_paths(struct rf_ssh_texts *texts, char *value)
{
    char *save = NULL;
    for (char *one = strtok_r(value, " ", &save); one != NULL;
         one = strtok_r(NULL, " ", &save)) {
        if (strcmp(one, "none") == 0) {
            add(texts, "/dev/null");
        } else if (texts->n > 0 && one[0] != '/' && one[0] != '~') {
            rf_text_add(&texts->list[texts->n - 1], " ", "%s", one);
        } else {
            add(texts, one);
        }
    }
}

/* Settings that this program does not honour. */
static void note_ignored(struct rf_ssh_settings *out, const char *name,
                         const char *value)
{
    static const char *const ignored[] = {
        "IdentitiesOnly", "AddressFamily", "BindAddress",
        "BindInterface",  "SetEnv",        "RevokedHostKeys",
        "PKCS11Provider", "ControlPath",   "PreferredAuthentications"};
    const size_t used = strlen(out->ignored);
    for (size_t i = 0; i < RF_ARRAY_SIZE(ignored); i++) {
        if (strcasecmp(name, ignored[i]) == 0 && strcmp(value, "no") != 0 &&
            strcmp(value, "none") != 0 && strcmp(value, "any") != 0 &&
            strstr(out->ignored, ignored[i]) == NULL) {
            snprintf(out->ignored + used, sizeof(out->ignored) - used, "%s%s",
                     used > 0 ? ", " : "", ignored[i]);
        }
    }
}

/* Lists of algorithms and the like; libssh keeps the ones it knows. Two had
 * other names before OpenSSH 8.5. */
static const struct {
    const char *name;
    enum ssh_options_e option, also; /* second of a pair, or the same */
} options[] = {
    {"ciphers", SSH_OPTIONS_CIPHERS_C_S, SSH_OPTIONS_CIPHERS_S_C},
    {"macs", SSH_OPTIONS_HMAC_C_S, SSH_OPTIONS_HMAC_S_C},
    {"kexalgorithms", SSH_OPTIONS_KEY_EXCHANGE, SSH_OPTIONS_KEY_EXCHANGE},
    {"hostkeyalgorithms", SSH_OPTIONS_HOSTKEYS, SSH_OPTIONS_HOSTKEYS},
    {"pubkeyacceptedalgorithms", SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES,
     SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES},
    {"pubkeyacceptedkeytypes", SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES,
     SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES},
    {"compression", SSH_OPTIONS_COMPRESSION, SSH_OPTIONS_COMPRESSION},
};

_Static_assert(RF_ARRAY_SIZE(options) ==
                   RF_ARRAY_SIZE(((struct rf_ssh_settings *)NULL)->options),
               "settings hold each option");

static void take_line(struct rf_ssh_settings *out, const char *name,
                      char *value)
{
    const struct {
        const char *name;
        char **text;
    } texts[] = {{"hostname", &out->host_name},
                 {"user", &out->user},
                 {"proxyjump", &out->proxy_jump},
                 {"proxycommand", &out->proxy_command},
                 {"identityagent", &out->identity_agent},
                 {"hostkeyalias", &out->host_key_alias},
                 {"knownhostscommand", &out->known_hosts_command}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(texts); i++) {
        if (strcmp(name, texts[i].name) == 0 && strcmp(value, "none") != 0) {
            set(texts[i].text, value);
        }
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(options); i++) {
        if (strcmp(name, options[i].name) == 0) {
            set(&out->options[i], value);
        }
    }
    if (strcmp(name, "port") == 0) {
        out->port = (unsigned)strtoul(value, NULL, 10);
    } else if (strcmp(name, "identityfile") == 0 &&
               strcmp(value, "none") != 0) {
        add(&out->identities, value);
    } else if (strcmp(name, "certificatefile") == 0 &&
               strcmp(value, "none") != 0) {
        add(&out->certificates, value);
    } else if (strcmp(name, "userknownhostsfile") == 0) {
        add_paths(&out->known_hosts, value);
    } else if (strcmp(name, "globalknownhostsfile") == 0) {
        add_paths(&out->global_known_hosts, value);
    }
    note_ignored(out, name, value);
}

static enum rf_status expand_paths(const struct rf_ssh_settings *settings,
                                   const char *what, struct rf_ssh_texts *paths,
                                   struct rf_err *err)
{
    for (size_t i = 0; i < paths->n; i++) {
        char *path = rf_ssh_expand_home(paths->list[i]);
        free(paths->list[i]);
        paths->list[i] = path;
        RF_TRY(rf_ssh_expand(settings, what, path, true, NULL, &paths->list[i],
                             err));
        free(path);
    }
    return RF_OK;
}

enum rf_status rf_ssh_take_config(char *answer, struct rf_ssh_settings *out,
                                  struct rf_err *err)
{
    char *save = NULL;
    for (char *line = strtok_r(answer, "\r\n", &save); line != NULL;
         line = strtok_r(NULL, "\r\n", &save)) {
        char *value = strchr(line, ' ');
        if (value != NULL) {
            *value++ = '\0';
            take_line(out, line, value);
        }
    }
    RF_TRY(expand_paths(out, "IdentityFile", &out->identities, err));
    RF_TRY(expand_paths(out, "CertificateFile", &out->certificates, err));
    return expand_paths(out, "UserKnownHostsFile", &out->known_hosts, err);
}

/* --- All of it ------------------------------------------------------------ */

static enum rf_status ask_ssh(struct rf_ssh_job *job,
                              struct rf_ssh_settings *out, struct rf_err *err)
{
    const char *argv[16] = {"ssh", "-T", "-G"}, **next = &argv[3];
    char port[16], *answer = NULL;
    enum rf_status status;
    if (job->ssh_config != NULL) {
        *next++ = "-F";
        *next++ = job->ssh_config;
    }
    if (job->user != NULL) {
        *next++ = "-l";
        *next++ = job->user;
    }
    if (job->port != 0) {
        snprintf(port, sizeof(port), "%u", job->port);
        *next++ = "-p";
        *next++ = port;
    }
    *next++ = "--";
    *next++ = job->host;
    status = rf_ssh_capture(
        job,
        "reading the ssh config (ssh -G, including its Match exec commands)",
        argv, &answer, err);
    RF_THEN(status, rf_ssh_take_config(answer, out, err));
    if (status == RF_OK &&
        (out->host_name == NULL || out->user == NULL || out->port == 0)) {
        status =
            rf_err_set(err, RF_ERR_CONFIG,
                       "ssh -G does not resolve host %s: is ssh not OpenSSH's?",
                       job->host);
    }
    free(answer);
    return status;
}

/* The settings when the config is not read. */
static void set_defaults(const struct rf_ssh_job *job,
                         struct rf_ssh_settings *out)
{
    char global[] = "/etc/ssh/ssh_known_hosts";
    out->host_name = rf_xstrdup(job->host);
    out->user = job->user != NULL ? rf_xstrdup(job->user) : login_name();
    out->port = job->port != 0 ? job->port : SSH_PORT;
    RF_PUSH(out->known_hosts.list, out->known_hosts.n, out->known_hosts.cap,
            rf_ssh_expand_home("~/.ssh/known_hosts"));
    add_paths(&out->global_known_hosts, global);
}

static enum rf_status resolve(struct rf_ssh_job *job,
                              struct rf_ssh_settings *out, struct rf_err *err)
{
    static const char no_entry[] = "ssh(1) needs a passwd entry for this user";
    char *login = login_name();
    const bool known = login[0] != '\0';
    enum rf_status status;
    free(login);
    if (!job->use_ssh_config) {
        set_defaults(job, out);
        return RF_OK;
    }
    if (job->ssh_config != NULL && access(job->ssh_config, R_OK) != 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", job->ssh_config);
    }
    status = known ? ask_ssh(job, out, err)
                   : rf_err_set(err, RF_ERR_UNSUPPORTED, "%s: %s",
                                job->ssh_config != NULL ? job->ssh_config
                                                        : "the ssh config",
                                no_entry);
    if (status == RF_ERR_UNSUPPORTED && job->ssh_config == NULL) {
        rf_ssh_note(job, "warning: ssh config not read: %s",
                    known ? "ssh(1) not found" : no_entry);
        set_defaults(job, out);
        return RF_OK;
    }
    if (status == RF_OK && out->ignored[0] != '\0') {
        rf_ssh_note(job, "warning: ssh config: unsupported options ignored: %s",
                    out->ignored);
    }
    return status;
}

enum rf_status rf_ssh_read_config(struct rf_ssh_job *job,
                                  struct rf_ssh_settings *out,
                                  struct rf_err *err)
{
    *out = (struct rf_ssh_settings){.name = job->host};
    RF_TRY(resolve(job, out, err));
    if (out->user[0] == '\0') {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "no user name for %s: set %s.user (uid %u has no passwd entry)",
            job->host, job->place, (unsigned)getuid());
    }
    if (job->known_hosts != NULL) { /* replaces all others */
        free_texts(&out->known_hosts);
        free_texts(&out->global_known_hosts);
        RF_PUSH(out->known_hosts.list, out->known_hosts.n, out->known_hosts.cap,
                rf_ssh_expand_home(job->known_hosts));
        free(out->known_hosts_command);
        out->known_hosts_command = NULL;
    }
    return RF_OK;
}

enum rf_status rf_ssh_set_options(const struct rf_ssh_settings *settings,
                                  ssh_session session, struct rf_err *err)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(options); i++) {
        const char *value = settings->options[i];
        if (value != NULL &&
            (ssh_options_set(session, options[i].option, value) != 0 ||
             ssh_options_set(session, options[i].also, value) != 0)) {
            return rf_err_set(err, RF_ERR_CONFIG, "%s of the ssh config: %s",
                              options[i].name, rf_ssh_reason(session));
        }
    }
    return RF_OK;
}

void rf_ssh_settings_free(struct rf_ssh_settings *settings)
{
    char *const texts[] = {
        settings->host_name,          settings->user,
        settings->proxy_jump,         settings->proxy_command,
        settings->identity_agent,     settings->host_key_alias,
        settings->known_hosts_command};
    for (size_t i = 0; i < RF_ARRAY_SIZE(texts); i++) {
        free(texts[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(settings->options); i++) {
        free(settings->options[i]);
    }
    free_texts(&settings->identities);
    free_texts(&settings->certificates);
    free_texts(&settings->known_hosts);
    free_texts(&settings->global_known_hosts);
    *settings = (struct rf_ssh_settings){0};
}
