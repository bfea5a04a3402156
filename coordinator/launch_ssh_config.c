/*
 * A second look at the ssh config, beside libssh's own: libssh 0.10 neither
 * hands out more than one key file nor says which settings it leaves out, and
 * after a HostName it matches later Host lines with that name. What was found
 * here goes before what libssh found.
 *
 * Host blocks are matched as ssh does. Of Match blocks the criteria all, host,
 * originalhost and user are understood; a block with others does not count
 * here (libssh still applies it). Include nests at most INCLUDE_DEPTH deep.
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
#include "coordinator/launch_ssh.h"

#define INCLUDE_DEPTH 6

/* What a file is read with. */
struct scan_state {
    const char *host, *user, *home, *folder;
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

static bool match_block(const struct scan_state *state, char *criteria)
{
    char *save = NULL;
    bool any = false;
    for (char *word = strtok_r(criteria, " \t", &save); word != NULL;
         word = strtok_r(NULL, " \t", &save)) {
        bool of_host = strcasecmp(word, "host") == 0 ||
                       strcasecmp(word, "originalhost") == 0;
        const char *text;
        char *list;
        any = true;
        if (strcasecmp(word, "all") == 0) {
            continue;
        }
        if (!of_host && strcasecmp(word, "user") != 0) {
            return false;
        }
        text = !of_host ? state->user
               : strcasecmp(word, "host") == 0 && state->out->host_name != NULL
                   ? state->out->host_name
                   : state->host;
        list = strtok_r(NULL, " \t", &save);
        if (list == NULL || !list_matches(list, ",", text)) {
            return false;
        }
    }
    return any;
}

/* %d, %h, %r, %u and %% of a path, and a leading "~/"; NULL for others. */
static char *expand_path(const struct scan_state *state, const char *path)
{
    char out[1024] = "", login[64] = "";
    size_t used = 0;
    if (strncmp(path, "~/", 2) == 0) {
        used = (size_t)snprintf(out, sizeof(out), "%s/", state->home);
        path += 2;
    }
    (void)getlogin_r(login, sizeof(login));
    for (; *path != '\0'; path++) {
        char one[2] = {*path, '\0'};
        const char *value = one;
        if (*path == '%') {
            path++;
            value = *path == 'd'   ? state->home
                    : *path == 'h' ? state->host
                    : *path == 'r' ? state->user
                    : *path == 'u' ? login
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

/* Whether there is one of the two that exclude each other. */
static bool has_proxy(const struct rf_ssh_scan *out)
{
    return out->proxy_jump != NULL || out->proxy_command != NULL;
}

/* A setting of which the first one counts; false: none of these. */
static bool take_first(const struct scan_state *state, const char *key,
                       const char *value)
{
    struct rf_ssh_scan *out = state->out;
    if (strcasecmp(key, "HostName") == 0) {
        out->host_name =
            out->host_name != NULL ? out->host_name : expand_path(state, value);
    } else if (strcasecmp(key, "User") == 0) {
        out->user = out->user != NULL ? out->user : rf_xstrdup(value);
    } else if (strcasecmp(key, "Port") == 0) {
        out->port = out->port != 0 ? out->port : port_of(value);
    } else if (strcasecmp(key, "ProxyJump") == 0) {
        out->proxy_jump = has_proxy(out) ? out->proxy_jump : rf_xstrdup(value);
    } else if (strcasecmp(key, "ProxyCommand") == 0) {
        out->proxy_command =
            has_proxy(out) ? out->proxy_command : rf_xstrdup(value);
    } else if (strcasecmp(key, "HostKeyAlias") == 0) {
        out->host_key_alias = out->host_key_alias != NULL ? out->host_key_alias
                                                          : rf_xstrdup(value);
    } else if (strcasecmp(key, "IdentityAgent") == 0) {
        out->identity_agent = out->identity_agent != NULL
                                  ? out->identity_agent
                                  : expand_path(state, value);
    } else {
        return false;
    }
    return true;
}

/* One setting of a block that applies. */
static void take_setting(const struct scan_state *state, const char *key,
                         const char *value)
{
    static const char *const ignored[] = {
        "IdentitiesOnly",  "CertificateFile",
        "AddressFamily",   "BindAddress",
        "BindInterface",   "SetEnv",
        "RevokedHostKeys", "PKCS11Provider",
        "ControlPath",     "PreferredAuthentications"};
    if (take_first(state, key, value)) {
        return;
    }
    if (strcasecmp(key, "IdentityFile") == 0) {
        add_identity(state, value);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(ignored); i++) {
        if (strcasecmp(key, ignored[i]) == 0 && strcasecmp(value, "no") != 0 &&
            strcasecmp(value, "none") != 0 && strcasecmp(value, "any") != 0) {
            add_ignored(state->out, ignored[i]);
        }
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
                      bool active, unsigned depth);

static void scan_include(const struct scan_state *state, const char *value,
                         bool active, unsigned depth)
{
    char *pattern = value[0] == '/' ? rf_xstrdup(value)
                    : strncmp(value, "~/", 2) == 0
                        ? rf_ssh_expand_home(value)
                        : rf_xasprintf("%s/%s", state->folder, value);
    glob_t found = {0};
    if (depth < INCLUDE_DEPTH && glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            scan_file(state, found.gl_pathv[i], active, depth + 1);
        }
    }
    globfree(&found);
    free(pattern);
}

static void scan_file(const struct scan_state *state, const char *path,
                      bool active, unsigned depth)
{
    FILE *file = fopen(path, "re");
    bool outer = active;
    char *line = NULL, *key, *value;
    size_t size = 0;
    while (file != NULL && getline(&line, &size, file) >= 0) {
        if (!split_line(line, &key, &value)) {
            continue;
        }
        if (strcasecmp(key, "Host") == 0) {
            active = outer && list_matches(value, " \t", state->host);
        } else if (strcasecmp(key, "Match") == 0) {
            active = outer && match_block(state, value);
        } else if (strcasecmp(key, "Include") == 0 && value[0] != '\0') {
            scan_include(state, value, active, depth);
        } else if (active && value[0] != '\0') {
            take_setting(state, key, value);
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
    struct scan_state state = {.host = host,
                               .user = user != NULL ? user : "",
                               .home = home,
                               .folder = folder,
                               .out = out};
    memset(out, 0, sizeof(*out));
    if (file != NULL) {
        scan_file(&state, file, true, 0);
    } else {
        char *own = rf_xasprintf("%s/config", folder);
        scan_file(&state, own, true, 0);
        state.folder = "/etc/ssh";
        scan_file(&state, "/etc/ssh/ssh_config", true, 0);
        free(own);
    }
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
