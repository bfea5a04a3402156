/*
 * Names of files in shared folders. See disk_names.h. A name that cannot be
 * removed stays: the caller is about to exit or does not need it.
 *
 * A label of another boot is not enough to remove a file: it must also be older
 * than this boot. Two machines that pass for one (copies of one image with one
 * host name) thus do not remove each other's files in use.
 */
#include "transport/disk/disk_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/procstat.h"
#include "common/text.h"

#define NODE_SIZE 17
#define BOOT_SIZE 9
#define TAG_SIZE 17

static const char *const kind_names[] = {
    [RF_DISK_DATA] = "data",
    [RF_DISK_LEDGER] = "ledger",
    [RF_DISK_EXPORT] = "export",
};

struct label {
    char node[NODE_SIZE], boot[BOOT_SIZE], tag[TAG_SIZE];
    int agent;
    int64_t start_ticks; /* of the agent; 0: unknown */
};

/* --- labels --------------------------------------------------------------- */

static bool make_tag(const uint8_t key[RF_DATA_KEY_BYTES], char out[TAG_SIZE])
{
    static const char what[] = "refit disk files";
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size;
    if (HMAC(EVP_sha256(), key, RF_DATA_KEY_BYTES, (const uint8_t *)what,
             sizeof(what), digest, &size) == NULL) {
        return false;
    }
    rf_hex_encode(digest, (TAG_SIZE - 1) / 2, out);
    return true;
}

/* Process ids are only meaningful on this node. */
static bool find_node(char out[NODE_SIZE])
{
    char host[256] = "", machine[64], text[512];
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct stat processes = {0};
    (void)gethostname(host, sizeof(host) - 1);
    (void)rf_text_read_line("/etc/machine-id", machine, sizeof(machine));
    (void)stat("/proc/self/ns/pid", &processes);
    snprintf(text, sizeof(text), "%s %s %ju", host, machine,
             (uintmax_t)processes.st_ino);
    if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL) != 1) {
        return false;
    }
    rf_hex_encode(digest, (NODE_SIZE - 1) / 2, out);
    return true;
}

static void find_boot(char out[BOOT_SIZE])
{
    char id[RF_BOOT_ID_SIZE];
    rf_procstat_boot_id(id);
    if (strspn(id, "0123456789abcdef") < BOOT_SIZE - 1) {
        snprintf(id, sizeof(id), "%s", "00000000");
    }
    snprintf(out, BOOT_SIZE, "%.8s", id);
}

static void write_owner(const struct label *label, char out[RF_DISK_OWNER_SIZE])
{
    snprintf(out, RF_DISK_OWNER_SIZE, "%s.%s.%d.%" PRId64, label->node,
             label->boot, label->agent, label->start_ticks);
}

static void write_label(const struct label *label, char out[RF_DISK_LABEL_SIZE])
{
    char owner[RF_DISK_OWNER_SIZE];
    write_owner(label, owner);
    snprintf(out, RF_DISK_LABEL_SIZE, "%s.%s", owner, label->tag);
}

/* *end is the offset after the label; false if there is none. */
static bool read_label(const char *text, struct label *out, int *end)
{
    char again[RF_DISK_LABEL_SIZE];
    int used = 0;
    if (sscanf(text, "%16[0-9a-f].%8[0-9a-f].%9d.%18" SCNd64 ".%16[0-9a-f]%n",
               out->node, out->boot, &out->agent, &out->start_ticks, out->tag,
               &used) != 5 ||
        strlen(out->node) != NODE_SIZE - 1 ||
        strlen(out->boot) != BOOT_SIZE - 1 ||
        strlen(out->tag) != TAG_SIZE - 1 || out->agent <= 0 ||
        out->start_ticks < 0) {
        return false;
    }
    write_label(out, again);
    *end = used;
    return (size_t)used == strlen(again) &&
           strncmp(text, again, (size_t)used) == 0;
}

static bool find_owner(pid_t agent, struct label *out)
{
    struct rf_procstat its;
    *out = (struct label){.agent = (int)agent};
    if (rf_procstat_read(agent, &its)) {
        out->start_ticks = its.start_ticks;
    }
    find_boot(out->boot);
    return find_node(out->node);
}

bool rf_disk_owner(pid_t agent, char out[RF_DISK_OWNER_SIZE])
{
    struct label label;
    if (!find_owner(agent, &label)) {
        return false;
    }
    write_owner(&label, out);
    return true;
}

bool rf_disk_label(const uint8_t key[RF_DATA_KEY_BYTES], pid_t agent,
                   char out[RF_DISK_LABEL_SIZE])
{
    struct label label;
    if (!find_owner(agent, &label) || !make_tag(key, label.tag)) {
        return false;
    }
    write_label(&label, out);
    return true;
}

bool rf_disk_label_is_good(const char *text)
{
    struct label label;
    int end;
    return read_label(text, &label, &end) && text[end] == '\0';
}

/* --- files ---------------------------------------------------------------- */

bool rf_disk_path(const char *folder, const char *label, uint32_t number,
                  enum rf_disk_kind kind, char out[RF_DISK_PATH_SIZE])
{
    int n = snprintf(out, RF_DISK_PATH_SIZE, "%s/refit-%s-%" PRIu32 ".%s",
                     folder, label, number, kind_names[kind]);
    return n > 0 && n < RF_DISK_PATH_SIZE;
}

void rf_disk_remove(const char *folder, const char *label, uint32_t rank)
{
    char path[RF_DISK_PATH_SIZE];
    for (int kind = RF_DISK_DATA; kind <= RF_DISK_LEDGER; kind++) {
        if (rf_disk_path(folder, label, rank, (enum rf_disk_kind)kind, path)) {
            unlink(path);
        }
    }
}

/* --- sweeping ------------------------------------------------------------- */

static bool read_name(const char *name, struct label *out)
{
    char kind[8];
    uint32_t number;
    int end, used = 0;
    if (strncmp(name, "refit-", 6) != 0 || !read_label(name + 6, out, &end) ||
        sscanf(name + 6 + end, "-%9" SCNu32 ".%7[a-z]%n", &number, kind,
               &used) != 2 ||
        name[6 + end + used] != '\0') {
        return false;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(kind_names); i++) {
        if (strcmp(kind, kind_names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* "refit-TOKEN-NODE" of another launch than `ours`, containing a label. */
static bool read_sign(int folder, const char *name, const char *ours,
                      struct label *out)
{
    char content[RF_DISK_LABEL_SIZE] = "", token[65];
    int end = 0, fd;
    (void)sscanf(name, "refit-%64[0-9a-f]-%*9u%n", token, &end);
    if (end == 0 || name[end] != '\0' || strcmp(token, ours) == 0) {
        return false;
    }
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    end = (int)read(fd, content, sizeof(content) - 1);
    close(fd);
    return end > 0 && read_label(content, out, &end) && content[end] == '\0';
}

static bool is_older_than_boot(int folder, const char *name)
{
    struct timespec now, up;
    struct stat info;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &up) != 0 ||
        fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    return info.st_mtime < now.tv_sec - up.tv_sec;
}

/* Whether an agent of this boot has ended, even if its id is in use again. */
static bool has_ended(const struct label *label)
{
    struct rf_procstat its;
    if (!rf_procstat_read((pid_t)label->agent, &its)) {
        return kill(label->agent, 0) != 0 && errno == ESRCH;
    }
    return its.state == 'Z' || its.state == 'X' ||
           (label->start_ticks != 0 && label->start_ticks != its.start_ticks);
}

struct sweep {
    char node[NODE_SIZE], boot[BOOT_SIZE]; /* ours */
    const char *token;                     /* likewise */
    char *const *gone;
    size_t n_gone;
};

static bool is_left_behind(const struct sweep *sweep, int folder,
                           const char *name)
{
    char owner[RF_DISK_OWNER_SIZE];
    struct label label;
    if (!read_name(name, &label) &&
        !read_sign(folder, name, sweep->token, &label)) {
        return false;
    }
    write_owner(&label, owner);
    for (size_t i = 0; i < sweep->n_gone; i++) {
        if (strcmp(owner, sweep->gone[i]) == 0) {
            return true;
        }
    }
    if (strcmp(label.node, sweep->node) != 0) {
        return false;
    }
    return strcmp(label.boot, sweep->boot) == 0
               ? has_ended(&label)
               : is_older_than_boot(folder, name);
}

void rf_disk_sweep(const char *folder, const char *token, char *const *gone,
                   size_t n_gone)
{
    struct sweep sweep = {.token = token, .gone = gone, .n_gone = n_gone};
    const struct dirent *entry;
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        return;
    }
    find_boot(sweep.boot);
    if (find_node(sweep.node)) {
        while ((entry = readdir(entries)) != NULL) {
            if (is_left_behind(&sweep, dirfd(entries), entry->d_name)) {
                unlinkat(dirfd(entries), entry->d_name, 0);
            }
        }
    }
    closedir(entries);
}
