/*
 * The Hub's cache: models--OWNER--NAME/ has refs/BRANCH, a file with a commit,
 * and snapshots/COMMIT/ with the files (huggingface_hub 2.4.0, constants.py and
 * file_download.py). See hub_cache.h.
 */
#include "coordinator/config/hub_cache.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/config/paths.h"

#define COMMIT_MAX 64
#define NAME_LETTERS                                                           \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

bool rf_hub_cache_is_name(const char *text)
{
    const size_t owner = strspn(text, NAME_LETTERS);
    const char *name = text + owner + 1;
    return owner > 0 && text[0] != '.' && text[owner] == '/' &&
           name[0] != '\0' && name[0] != '.' &&
           name[strspn(name, NAME_LETTERS)] == '\0' &&
           fnmatch("*.json", name, 0) != 0;
}

char *rf_hub_cache_folder(void)
{
    static const struct {
        const char *variable, *inside;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
        const char *value = getenv(places[i].variable);
        if (value != NULL && value[0] != '\0') {
            char *start = rf_paths_resolve(".", value);
            char *folder = rf_xasprintf("%s%s", start, places[i].inside);
            free(start);
            return folder;
        }
    }
    return rf_paths_resolve(".", "~/.cache/huggingface/hub");
}

static bool has_file(const char *folder, const char *pattern)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL &&
           fnmatch(pattern, entry->d_name, 0) != 0) {
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return entry != NULL;
}

/* The commit of a branch or tag; any other `revision` is itself a commit. */
static void find_commit(const char *repository, const char *revision,
                        char commit[COMMIT_MAX])
{
    char *path = rf_xasprintf("%s/refs/%s", repository, revision);
    if (rf_text_read_line(path, commit, COMMIT_MAX)) {
        commit[strcspn(commit, "\r")] = '\0';
    } else {
        snprintf(commit, COMMIT_MAX, "%s", revision);
    }
    free(path);
}

/* Takes the snapshot as `*best` if it is newer and has the file. */
static void consider(const char *folder, const char *commit,
                     const char *pattern, char **best, struct timespec *time)
{
    char *path = rf_xasprintf("%s/%s", folder, commit);
    struct stat info;
    if (commit[0] != '.' && has_file(path, pattern) && stat(path, &info) == 0 &&
        (*best == NULL || info.st_mtim.tv_sec > time->tv_sec ||
         (info.st_mtim.tv_sec == time->tv_sec &&
          info.st_mtim.tv_nsec > time->tv_nsec))) {
        free(*best);
        *best = path;
        *time = info.st_mtim;
    } else {
        free(path);
    }
}

char *rf_hub_cache_find(const char *name, const char *revision,
                        const char *pattern)
{
    const int owner = (int)strcspn(name, "/");
    char *cache = rf_hub_cache_folder();
    char *repository = rf_xasprintf("%s/models--%.*s--%s", cache, owner, name,
                                    name + owner + 1);
    char *folder = rf_xasprintf("%s/snapshots", repository), *best = NULL;
    char commit[COMMIT_MAX];
    struct timespec time = {0, 0};
    find_commit(repository, revision != NULL ? revision : "main", commit);
    consider(folder, commit, pattern, &best, &time);
    if (best == NULL && revision == NULL) {
        DIR *dir = opendir(folder);
        const struct dirent *entry;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            consider(folder, entry->d_name, pattern, &best, &time);
        }
        if (dir != NULL) {
            closedir(dir);
        }
    }
    free(folder);
    free(repository);
    free(cache);
    return best;
}
