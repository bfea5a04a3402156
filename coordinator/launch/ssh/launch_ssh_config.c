/*
 * A second look at the ssh config, beside libssh's own: libssh 0.10 neither
 * hands out more than one key file nor says which settings it leaves out, and
 * after a HostName it matches later Host lines with that name. What was found
 * here goes before what libssh found.
 *
 * Host blocks are matched as ssh does. Of Match blocks the criteria all, host,
 * originalhost, user and localuser are understood. "final" and "canonical" do
 * not match: they are for ssh's second reading, which sets only what the first
 * has left open, so libssh's value counts where there is no other. Whether a
 * block with another criterion applies, "exec" above all, is for libssh to say:
 * what it sets first is libssh's for good, whatever comes later in the file.
 * Include nests at most INCLUDE_DEPTH deep.
 */
#include <ctype.h>
#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define INCLUDE_DEPTH 6

/* Settings of which the first one counts. */
enum key {
    KEY_HOST_NAME,
    KEY_USER,
    KEY_PORT,
    KEY_PROXY_JUMP,
    KEY_PROXY_COMMAND,
    KEY_HOST_KEY_ALIAS,
    KEY_IDENTITY_AGENT,
    N_KEYS,
};

/* Whether a block applies, from the least; a block in a file that another one
 * includes applies as far as that does. */
enum applies { NEVER, PERHAPS, ALWAYS };

/* What a file is read with. */
struct scan_state {
    const char *host, *home, *folder;
    const char *user;  /* asked for, goes before the file's; NULL: none */
    const char *login; /* of who runs this */
    bool *undecided;   /* for each key: libssh's value counts */
    struct rf_ssh_scan *out;
};

char *rf_ssh_home(void)
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

/* Of who runs this; "" when unknown. */
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
    home = rf_ssh_home();
    full = rf_xasprintf("%s/%s", home, path + 2);
    free(home);
    return full;
}

/* Shell pattern with * and ? only, as ssh has it. */
static bool glob_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *back = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            back = text;
        } else if (*pattern == '?' || tolower((unsigned char)*pattern) ==
                                          tolower((unsigned char)*text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

/* A list of patterns between `separators`; a negated match decides. */
static bool list_matches(char *list, const char *separators, const char *text)
{
    bool matched = false;
    char *save = NULL;
    for (char *one = strtok_r(list, separators, &save); one != NULL;
         one = strtok_r(NULL, separators, &save)) {
        if (one[0] == '!' && glob_matches(one + 1, text)) {
            return false;
        }
        matched = matched || glob_matches(one, text);
    }
    return matched;
}

static const char *user_so_far(const struct scan_state *state)
{
    return state->user != NULL        ? state->user
           : state->out->user != NULL ? state->out->user
                                      : state->login;
}

/* What a criterion's patterns are for, with whether that is known for sure;
 * NULL: no criterion of this kind. */
static const char *subject_of(const struct scan_state *state, const char *word,
                              bool *sure)
{
    *sure = true;
    if (strcasecmp(word, "originalhost") == 0) {
        return state->host;
    }
    if (strcasecmp(word, "localuser") == 0) {
        return state->login;
    }
    if (strcasecmp(word, "host") == 0) {
        *sure = !state->undecided[KEY_HOST_NAME];
        return state->out->host_name != NULL ? state->out->host_name
                                             : state->host;
    }
    if (strcasecmp(word, "user") == 0) {
        *sure = state->user != NULL || !state->undecided[KEY_USER];
        return user_so_far(state);
    }
    return NULL;
}

/* One criterion of a Match line, its argument taken from `save`. */
static enum applies match_one(const struct scan_state *state, const char *word,
                              char **save)
{
    const bool negated = word[0] == '!';
    const char *subject;
    bool matches = false, sure = true;
    char *list;
    word += negated;
    if (strcasecmp(word, "all") == 0) {
        matches = true;
    } else if (strcasecmp(word, "final") != 0 &&
               strcasecmp(word, "canonical") != 0) {
        subject = subject_of(state, word, &sure);
        list = subject != NULL ? strtok_r(NULL, " \t", save) : NULL;
        if (subject == NULL) {
            *save += strlen(*save); /* where its argument ends is not known */
            return PERHAPS;
        }
        if (list == NULL) {
            return NEVER;
        }
        matches = list_matches(list, ",", subject);
    }
    return !sure ? PERHAPS : matches != negated ? ALWAYS : NEVER;
}

static enum applies match_block(const struct scan_state *state, char *criteria)
{
    char *save = NULL;
    enum applies applies = ALWAYS;
    bool any = false;
    for (char *word = strtok_r(criteria, " \t", &save); word != NULL;
         word = strtok_r(NULL, " \t", &save)) {
        enum applies one = match_one(state, word, &save);
        applies = RF_MIN(applies, one);
        any = true;
    }
    return any ? applies : NEVER;
}

/* %d, %h, %r, %u and %% of a path, and a leading "~/"; NULL for others. */
static char *expand_path(const struct scan_state *state, const char *path)
{
    char out[1024] = "";
    size_t used = 0;
    if (strncmp(path, "~/", 2) == 0) {
        used = (size_t)snprintf(out, sizeof(out), "%s/", state->home);
        path += 2;
    }
    for (; *path != '\0'; path++) {
        char one[2] = {*path, '\0'};
        const char *value = one;
        if (*path == '%') {
            path++;
            value = *path == 'd'   ? state->home
                    : *path == 'h' ? state->host
                    : *path == 'r' ? user_so_far(state)
                    : *path == 'u' ? state->login
                    : *path == '%' ? "%"
                                   : NULL;
            if (value == NULL) {
                return NULL;
            }
        }
        if (used + strlen(value) >= sizeof(out)) {
            return NULL;
        }
        used += (size_t)snprintf(out + used, sizeof(out) - used, "%s", value);
    }
    return rf_xstrdup(out);
}

static void add_identity(const struct scan_state *state, const char *value)
{
    struct rf_ssh_scan *out = state->out;
    char *path = expand_path(state, value);
    for (unsigned i = 0; path != NULL && i < out->n_identities; i++) {
        if (strcmp(out->identities[i], path) == 0) {
            free(path);
            path = NULL;
        }
    }
    if (path == NULL || out->n_identities == RF_SSH_IDENTITIES_MAX ||
        strcasecmp(value, "none") == 0) {
        free(path);
        return;
    }
    out->identities[out->n_identities++] = path;
}

/* 0: not a port. */
static unsigned port_of(const char *value)
{
    char *end;
    unsigned long port = strtoul(value, &end, 10);
    return *end == '\0' && port <= UINT16_MAX ? (unsigned)port : 0;
}

static void add_ignored(struct rf_ssh_scan *out, const char *name)
{
    size_t used = strlen(out->ignored);
    if (strstr(out->ignored, name) == NULL) {
        snprintf(out->ignored + used, sizeof(out->ignored) - used, "%s%s",
                 used > 0 ? ", " : "", name);
    }
}

static enum key key_of(const char *name)
{
    static const char *const names[N_KEYS] = {
        [KEY_HOST_NAME] = "HostName",
        [KEY_USER] = "User",
        [KEY_PORT] = "Port",
        [KEY_PROXY_JUMP] = "ProxyJump",
        [KEY_PROXY_COMMAND] = "ProxyCommand",
        [KEY_HOST_KEY_ALIAS] = "HostKeyAlias",
        [KEY_IDENTITY_AGENT] = "IdentityAgent"};
    enum key key = 0;
    while (key < N_KEYS && strcasecmp(name, names[key]) != 0) {
        key++;
    }
    return key;
}

/* Whether an earlier line has settled it. */
static bool is_settled(const struct scan_state *state, enum key key)
{
    const struct rf_ssh_scan *out = state->out;
    const bool set[N_KEYS] = {
        [KEY_HOST_NAME] = out->host_name != NULL,
        [KEY_USER] = out->user != NULL,
        [KEY_PORT] = out->port != 0,
        [KEY_PROXY_JUMP] = out->proxy_jump != NULL,
        [KEY_PROXY_COMMAND] = out->proxy_command != NULL,
        [KEY_HOST_KEY_ALIAS] = out->host_key_alias != NULL,
        [KEY_IDENTITY_AGENT] = out->identity_agent != NULL};
    const enum key other = key == KEY_PROXY_JUMP      ? KEY_PROXY_COMMAND
                           : key == KEY_PROXY_COMMAND ? KEY_PROXY_JUMP
                                                      : key;
    return set[key] || set[other] || state->undecided[key] ||
           state->undecided[other];
}

/* The first line that sets a key. */
static void take_first(const struct scan_state *state, enum key key,
                       const char *value)
{
    struct rf_ssh_scan *out = state->out;
    switch (key) {
    case KEY_HOST_NAME:
        out->host_name = expand_path(state, value);
        break;
    case KEY_USER:
        out->user = rf_xstrdup(value);
        break;
    case KEY_PORT:
        out->port = port_of(value);
        break;
    case KEY_PROXY_JUMP:
        out->proxy_jump = rf_xstrdup(value);
        break;
    case KEY_PROXY_COMMAND:
        out->proxy_command = rf_xstrdup(value);
        break;
    case KEY_HOST_KEY_ALIAS:
        out->host_key_alias = rf_xstrdup(value);
        break;
    case KEY_IDENTITY_AGENT:
        out->identity_agent = expand_path(state, value);
        break;
    case N_KEYS:
        break;
    }
}

/* One setting of a block that applies. */
static void take_setting(const struct scan_state *state, const char *name,
                         const char *value)
{
    static const char *const ignored[] = {
        "IdentitiesOnly",  "CertificateFile",
        "AddressFamily",   "BindAddress",
        "BindInterface",   "SetEnv",
        "RevokedHostKeys", "PKCS11Provider",
        "ControlPath",     "PreferredAuthentications"};
    const enum key key = key_of(name);
    if (key != N_KEYS && !is_settled(state, key)) {
        take_first(state, key, value);
    }
    if (strcasecmp(name, "IdentityFile") == 0) {
        add_identity(state, value);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(ignored); i++) {
        if (strcasecmp(name, ignored[i]) == 0 && strcasecmp(value, "no") != 0 &&
            strcasecmp(value, "none") != 0 && strcasecmp(value, "any") != 0) {
            add_ignored(state->out, ignored[i]);
        }
    }
}

/* One of a block that applies if libssh says so. */
static void leave_setting(const struct scan_state *state, const char *name)
{
    const enum key key = key_of(name);
    if (key != N_KEYS && !is_settled(state, key)) {
        state->undecided[key] = true;
    }
}

/* Splits "Key value", "Key = value", "Key "value""; the value may be empty.
 * False for a blank line or a comment. */
static bool split_line(char *line, char **key, char **value)
{
    size_t length;
    line += strspn(line, " \t");
    if (*line == '#' || *line == '\0' || *line == '\n') {
        return false;
    }
    *key = line;
    line += strcspn(line, " \t=\r\n");
    if (*line != '\0') {
        *line++ = '\0';
    }
    line += strspn(line, " \t=");
    length = strcspn(line, "\r\n");
    while (length > 0 &&
           (line[length - 1] == ' ' || line[length - 1] == '\t')) {
        length--;
    }
    if (length >= 2 && line[0] == '"' && line[length - 1] == '"') {
        line++;
        length -= 2;
    }
    line[length] = '\0';
    *value = line;
    return **key != '\0';
}

static void scan_file(const struct scan_state *state, const char *path,
                      enum applies applies, unsigned depth);

static void scan_include(const struct scan_state *state, const char *value,
                         enum applies applies, unsigned depth)
{
    char *pattern = value[0] == '/' ? rf_xstrdup(value)
                    : strncmp(value, "~/", 2) == 0
                        ? rf_ssh_expand_home(value)
                        : rf_xasprintf("%s/%s", state->folder, value);
    glob_t found = {0};
    if (depth < INCLUDE_DEPTH && glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            scan_file(state, found.gl_pathv[i], applies, depth + 1);
        }
    }
    globfree(&found);
    free(pattern);
}

static void scan_file(const struct scan_state *state, const char *path,
                      enum applies applies, unsigned depth)
{
    FILE *file = fopen(path, "re");
    const enum applies outer = applies;
    char *line = NULL, *key, *value;
    size_t size = 0;
    while (file != NULL && getline(&line, &size, file) >= 0) {
        if (!split_line(line, &key, &value)) {
            continue;
        }
        if (strcasecmp(key, "Host") == 0) {
            applies = list_matches(value, " \t", state->host) ? outer : NEVER;
        } else if (strcasecmp(key, "Match") == 0) {
            applies = match_block(state, value);
            applies = RF_MIN(outer, applies);
        } else if (strcasecmp(key, "Include") == 0 && value[0] != '\0') {
            scan_include(state, value, applies, depth);
        } else if (applies == ALWAYS && value[0] != '\0') {
            take_setting(state, key, value);
        } else if (applies == PERHAPS) {
            leave_setting(state, key);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

void rf_ssh_scan_config(const char *file, const char *host, const char *user,
                        struct rf_ssh_scan *out)
{
    char *home = rf_ssh_home();
    char *folder = rf_xasprintf("%s/.ssh", home);
    char *login = login_name();
    bool undecided[N_KEYS] = {false};
    struct scan_state state = {.host = host,
                               .user = user,
                               .login = login,
                               .undecided = undecided,
                               .home = home,
                               .folder = folder,
                               .out = out};
    memset(out, 0, sizeof(*out));
    if (file != NULL) {
        scan_file(&state, file, ALWAYS, 0);
    } else {
        char *own = rf_xasprintf("%s/config", folder);
        scan_file(&state, own, ALWAYS, 0);
        state.folder = "/etc/ssh";
        scan_file(&state, "/etc/ssh/ssh_config", ALWAYS, 0);
        free(own);
    }
    free(login);
    free(folder);
    free(home);
}

void rf_ssh_scan_free(struct rf_ssh_scan *scan)
{
    for (unsigned i = 0; i < scan->n_identities; i++) {
        free(scan->identities[i]);
    }
    free(scan->identity_agent);
    free(scan->host_key_alias);
    free(scan->host_name);
    free(scan->user);
    free(scan->proxy_jump);
    free(scan->proxy_command);
    memset(scan, 0, sizeof(*scan));
}
