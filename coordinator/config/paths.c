/* See paths.h. */
#include "coordinator/config/paths.h"

#include <stdlib.h>
#include <string.h>

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
