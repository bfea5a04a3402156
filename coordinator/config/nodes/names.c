/* Names fit for commands, whatever the locale. See names.h. */
#include "coordinator/config/nodes/names.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

/* Only ASCII letters, digits and `more`; whatever the locale. */
static bool made_of(const char *text, const char *more, size_t longest)
{
    size_t length = strlen(text);
    if (length == 0 || length > longest) {
        return false;
    }
    for (; *text != '\0'; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') ||
                     (*text >= 'A' && *text <= 'Z') ||
                     (*text >= '0' && *text <= '9');
        if (!plain && strchr(more, *text) == NULL) {
            return false;
        }
    }
    return true;
}

bool rf_names_valid_host(const char *host)
{
    struct in6_addr address;
    char copy[128];
    const char *zone = strchr(host, '%');
    size_t length = zone != NULL ? (size_t)(zone - host) : strlen(host);
    if (strchr(host, ':') == NULL) {
        return made_of(host, "._-", 253) && host[0] != '-' && host[0] != '.';
    }
    if (length >= sizeof(copy) ||
        (zone != NULL && !made_of(zone + 1, "._-", 15))) {
        return false;
    }
    memcpy(copy, host, length);
    copy[length] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1;
}

bool rf_names_valid_user(const char *user)
{
    return made_of(user, "._-", 64) && user[0] != '-' && user[0] != '.';
}

bool rf_names_valid_worker(const char *path)
{
    const char *rest = strncmp(path, "~/", 2) == 0 ? path + 2 : path;
    if (!made_of(rest, "._/+-", 1024) || rest[0] == '-') {
        return false;
    }
    for (const char *at = rest; (at = strstr(at, "..")) != NULL; at += 2) {
        if ((at == rest || at[-1] == '/') && (at[2] == '/' || at[2] == '\0')) {
            return false;
        }
    }
    return rest[strlen(rest) - 1] != '/';
}

bool rf_names_valid_file(const char *name, size_t longest)
{
    return made_of(name, "._-+=", longest) && name[0] != '-' && name[0] != '.';
}
