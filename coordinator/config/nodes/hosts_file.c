/* Host files. See hosts.h. An error names the file and the line. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/config/nodes/hosts_internal.h"

#define BLANKS " \t\r"
#define WRITER_MS 500 /* silent wait for a FIFO's writer */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* "slots=4", with or without blanks around "=". Open MPI's limits for more
 * processes than slots are ignored. */
static enum rf_status read_option(char **at, uint32_t *slots,
                                  struct rf_err *err)
{
    static const char *const keys[] = {"slots", "max_slots", "max-slots", NULL};
    char key[16], value[16], *word = *at;
    size_t size = strcspn(word, BLANKS "=");
    snprintf(key, sizeof(key), "%.*s", (int)RF_MIN(size, sizeof(key)), word);
    *at += size;
    *at += strspn(*at, BLANKS);
    if (!rf_word_is_one_of(key, keys)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "unknown word \"%s\" after a host%s; a line has a "
                          "host and optionally slots=NUMBER",
                          key, rf_did_you_mean(key, keys).text);
    }
    if (**at != '=') {
        return rf_err_set(err, RF_ERR_CONFIG, "\"%s\" needs \"=NUMBER\"", key);
    }
    *at += 1 + strspn(*at + 1, BLANKS);
    size = strcspn(*at, BLANKS);
    snprintf(value, sizeof(value), "%.*s", (int)RF_MIN(size, sizeof(value)),
             *at);
    *at += size;
    *at += strspn(*at, BLANKS);
    return strcmp(key, keys[0]) == 0 ? rf_hosts_slots(value, slots, err)
                                     : RF_OK;
}

/* Adds the host of a line that has no comment any more; modifies the line. */
static enum rf_status read_line(char *line, struct rf_hosts *out,
                                struct rf_err *err)
{
    char *at = line + strspn(line, BLANKS), *word = at;
    size_t size = strcspn(at, BLANKS);
    uint32_t slots = 0;
    enum rf_status status = RF_OK;
    if (size == 0) {
        return RF_OK;
    }
    at += size;
    at += strspn(at, BLANKS);
    while (status == RF_OK && *at != '\0') {
        status = read_option(&at, &slots, err);
    }
    word[size] = '\0';
    return status != RF_OK
               ? status
               : rf_hosts_add_word(word, slots, RF_HOSTS_SUM, out, err);
}

enum rf_status rf_hosts_parse_file(const char *text, size_t size,
                                   const char *name, struct rf_hosts *out,
                                   struct rf_err *err)
{
    const size_t mark = sizeof(BYTE_ORDER_MARK) - 1;
    size_t number = 0;
    enum rf_status status = RF_OK;
    if (size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0) {
        text += mark;
        size -= mark;
    }
    if (memchr(text, '\0', size) != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG, "%s: NUL byte: not a host file",
                          name);
    }
    while (status == RF_OK && size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end != NULL ? (size_t)(end - text) : size;
        char *line = rf_xasprintf("%.*s", (int)length, text);
        number++;
        line[strcspn(line, "#")] = '\0';
        status = read_line(line, out, err);
        free(line);
        length += end != NULL ? 1 : 0;
        text += length;
        size -= length;
    }
    RF_TRY(rf_err_within(status, err, "%s:%zu", name, number));
    return out->n > 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG, "%s: has no hosts", name);
}

/* Like open() for reading, but says so when it waits for a FIFO without a
 * writer, as shells make for `--hostfile <(command)`. */
static int open_hosts(const char *path)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct pollfd writer = {.fd = fd, .events = POLLIN};
    struct stat file;
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode) &&
        poll(&writer, 1, WRITER_MS) <= 0) {
        rf_warn("%s: waiting for its writer", path);
        while (poll(&writer, 1, -1) < 0 && errno == EINTR) {
        }
    }
    (void)fcntl(fd, F_SETFL, O_RDONLY);
    return fd;
}

enum rf_status rf_hosts_load(const char *path, struct rf_hosts *out,
                             struct rf_err *err)
{
    const int fd = open_hosts(path);
    char *text = NULL;
    size_t size = 0;
    enum rf_status status;
    if (fd < 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s: cannot open", path);
    }
    status =
        rf_json_read_text(fd, path, RF_HOSTS_MAX_FILE_BYTES, &text, &size, err);
    close(fd);
    RF_THEN(status, rf_hosts_parse_file(text, size, path, out, err));
    free(text);
    return status;
}
