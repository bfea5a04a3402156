/* See step_input.h. */
#include "worker/agent/step_input.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/compiler.h"

#define LIMIT_S 60

struct line_reader {
    int fd;
    int64_t deadline_ns;
    char bytes[RF_STEP_LINE_MAX];
    size_t n, at; /* bytes read, bytes consumed */
};

static enum rf_status fill(struct line_reader *reader, struct rf_err *err)
{
    struct pollfd in = {.fd = reader->fd, .events = POLLIN};
    int64_t left_ms = (reader->deadline_ns - rf_now_ns()) / RF_NS_PER_MS;
    ssize_t got = -1;
    if (left_ms <= 0 || poll(&in, 1, (int)left_ms) == 0) {
        return rf_err_set(err, RF_ERR_TIMEOUT,
                          "no orders on standard input within %d s", LIMIT_S);
    }
    got = read(reader->fd, reader->bytes, sizeof(reader->bytes));
    if (got == 0) {
        return rf_err_set(err, RF_ERR_PEER,
                          "standard input ended before its line \"end\"");
    }
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
        return rf_err_errno(err, RF_ERR_PEER, errno, "standard input");
    }
    reader->n = got > 0 ? (size_t)got : 0;
    reader->at = 0;
    return RF_OK;
}

static enum rf_status read_line(struct line_reader *reader,
                                char line[RF_STEP_LINE_MAX], struct rf_err *err)
{
    size_t used = 0;
    for (;;) {
        char byte;
        if (reader->at == reader->n) {
            RF_TRY(fill(reader, err));
            continue;
        }
        byte = reader->bytes[reader->at++];
        if (byte == '\n') {
            line[used] = '\0';
            return RF_OK;
        }
        if (used == RF_STEP_LINE_MAX - 1) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "line of standard input longer than %d bytes",
                              RF_STEP_LINE_MAX - 1);
        }
        line[used++] = byte;
    }
}

/* "node NAME IDENTITY KEY"; true if it is `node`'s and good. */
static bool take_node(const char *line, const char *node,
                      struct rf_step_input *out)
{
    size_t size = strlen(node), identity;
    const char *at = line + strlen("node ");
    if (strncmp(at, node, size) != 0 || at[size] != ' ') {
        return false;
    }
    at += size + 1;
    identity = strcspn(at, " ");
    if (identity == 0 || identity > RF_IDENTITY_MAX || at[identity] != ' ') {
        return false;
    }
    snprintf(out->identity, sizeof(out->identity), "%.*s", (int)identity, at);
    return rf_hex_decode(at + identity + 1, out->psk, RF_PSK_BYTES);
}

static bool starts_with(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static enum rf_status read_all(struct line_reader *reader, const char *node,
                               char line[RF_STEP_LINE_MAX],
                               struct rf_step_input *out, struct rf_err *err)
{
    bool found = false;
    for (;;) {
        RF_TRY(read_line(reader, line, err));
        if (strcmp(line, "end") == 0) {
            break;
        }
        if (starts_with(line, "connect ")) {
            snprintf(out->connect, sizeof(out->connect), "%s",
                     line + strlen("connect "));
        } else if (!starts_with(line, "node ")) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "line of standard input: expected \"connect\", "
                              "\"node\" or \"end\"");
        } else if (!found) {
            found = take_node(line, node, out);
        }
    }
    return found ? RF_OK
                 : rf_err_set(err, RF_ERR_PROTOCOL,
                              "no identity and key on standard input for this "
                              "node, %s in Slurm",
                              node);
}

enum rf_status rf_step_input_read(int fd, const char *node,
                                  struct rf_step_input *out, struct rf_err *err)
{
    struct line_reader reader = {
        .fd = fd, .deadline_ns = rf_now_ns() + LIMIT_S * RF_NS_PER_S};
    char line[RF_STEP_LINE_MAX] = "";
    enum rf_status status;
    *out = (struct rf_step_input){.connect = ""};
    if (node == NULL || node[0] == '\0') {
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "SLURMD_NODENAME is not set: must be started by srun");
    }
    status = read_all(&reader, node, line, out, err);
    explicit_bzero(line, sizeof(line));
    explicit_bzero(&reader, sizeof(reader));
    if (status != RF_OK) {
        explicit_bzero(out, sizeof(*out));
    }
    return status;
}
