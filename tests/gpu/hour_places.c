/* Where the programs, scripts and tools are that first-hour runs. See hour.h. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/gpu/hour.h"

static bool parent_has(char *dir, const char *name)
{
    char path[PATH_MAX + 64];
    char *slash = strrchr(dir, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

bool rf_hour_find_folders(const char *self, char bin[PATH_MAX],
                          char top[PATH_MAX])
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length > 0) {
        path[length] = '\0';
    } else if (realpath(self, path) == NULL) {
        perror("first-hour: finding itself");
        return false;
    }
    *strrchr(path, '/') = '\0';
    snprintf(bin, PATH_MAX, "%s", path);
    while (!parent_has(path, "tests/gpu/check-gpu")) {
        if (path[0] == '\0') {
            fprintf(stderr,
                    "first-hour: no tests/gpu/check-gpu above %s: run it in a "
                    "bundle or a source tree\n",
                    bin);
            return false;
        }
    }
    snprintf(top, PATH_MAX, "%s", path);
    return true;
}

bool rf_hour_find_tool(const char *name, char *out, size_t size)
{
    static const char *const usual[] = {
        "/usr/local/cuda/bin", "/usr/local/cuda*/bin",
        "/usr/local/cuda*/{nsight-compute*,compute-sanitizer}",
        "/opt/nvidia/nsight-compute/*"};
    const char *path = getenv("PATH");
    char *folders = rf_xstrdup(path != NULL ? path : "");
    char *rest = folders, *folder;
    bool found = false;
    while (!found && (folder = strsep(&rest, ":")) != NULL) {
        snprintf(out, size, "%s/%s", folder, name);
        found = access(out, X_OK) == 0;
    }
    free(folders);
    for (size_t i = 0; !found && i < RF_ARRAY_SIZE(usual); i++) {
        char pattern[128];
        glob_t matches;
        snprintf(pattern, sizeof(pattern), "%s/%s", usual[i], name);
        if (glob(pattern, GLOB_BRACE, NULL, &matches) == 0) {
            snprintf(out, size, "%s", matches.gl_pathv[matches.gl_pathc - 1]);
            found = access(out, X_OK) == 0;
        }
        globfree(&matches);
    }
    return found;
}

/* Adds what is set and not empty. */
static void append(char **list, const char *folders)
{
    char *longer;
    if (folders == NULL || folders[0] == '\0' ||
        asprintf(&longer, "%s%s%s", *list, **list != '\0' ? ":" : "", folders) <
            0) {
        return;
    }
    free(*list);
    *list = longer;
}

/* Adds folders of NCCL and NVSHMEM at or below `base`: of libraries, of Python's
 * packages, of virtual environments. */
static void append_found(char **list, const char *base)
{
    static const char places[] =
        "{,/.local,/.venv,/venv,/*,/*/.venv,/*/venv,/*/envs/*}/lib"
        "{,/python3*/*-packages/nvidia/*/lib}"
        "/{libnccl.so.2,libnvshmem_host.so.3}";
    char pattern[PATH_MAX + sizeof(places)];
    glob_t found;
    if (base == NULL || base[0] == '\0') {
        return;
    }
    snprintf(pattern, sizeof(pattern), "%s%s", base, places);
    if (glob(pattern, GLOB_BRACE, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            *strrchr(found.gl_pathv[i], '/') = '\0';
            append(list, found.gl_pathv[i]);
        }
    }
    globfree(&found);
}

void rf_hour_use_bundle(const char *top)
{
    static const char *const usual[] = {"/usr", "/usr/local", "/opt",
                                        "/workspace"};
    const char *path = getenv("PATH");
    char tools[PATH_MAX + 16], own[PATH_MAX + 16], here[PATH_MAX] = "";
    char *paths = rf_xstrdup(""), *libraries = rf_xstrdup("");
    snprintf(tools, sizeof(tools), "%s/tools", top);
    snprintf(own, sizeof(own), "%s/lib", top);
    if (access(tools, X_OK) == 0) {
        append(&paths, path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
        append(&paths, tools);
        setenv("PATH", paths, 1);
        append(&libraries, own);
        append(&libraries, getenv("LD_LIBRARY_PATH"));
        append_found(&libraries, getenv("VIRTUAL_ENV"));
        append_found(&libraries, getenv("CONDA_PREFIX"));
        append_found(&libraries, getcwd(here, sizeof(here)));
        append_found(&libraries, getenv("HOME"));
        for (size_t i = 0; i < RF_ARRAY_SIZE(usual); i++) {
            append_found(&libraries, usual[i]);
        }
        setenv("LD_LIBRARY_PATH", libraries, 1);
    }
    free(paths);
    free(libraries);
}
