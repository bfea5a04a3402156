/* See paths.h. */
#include "coordinator/config/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

char *rf_paths_resolve(const char *folder, const char *path)
{
    const char *home = getenv("HOME");
    if (strncmp(path, "~/", 2) == 0 && home != NULL) {
        return rf_xasprintf("%s/%s", home, path + 2);
    }
    if (path[0] == '/' || strcmp(folder, ".") == 0) {
        return rf_xstrdup(path);
    }
    return rf_xasprintf("%s/%s", folder, path);
}

char *rf_paths_absolute(const char *folder, const char *path)
{
    char *resolved = rf_paths_resolve(folder, path);
    char *here = resolved[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *whole;
    if (here == NULL) {
        return resolved;
    }
    whole = rf_xasprintf("%s/%s", here, resolved);
    free(here);
    free(resolved);
    return whole;
}
