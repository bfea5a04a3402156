/*
 * The engine of the GPU methods whose ranks move in lockstep steps
 * (cuda/lockstep/steps.h): nccl, nvshmem and ucx-cuda. The engine packs,
 * unpacks, keeps the order of steps and their times; a method gives the wire
 * (struct rf_lockstep_ops).
 *
 * In an iteration every step passes three cursors:
 *
 *     packed   its packing is enqueued, on the stream of packing
 *     posted   the wire has its messages
 *     landed   its unpacking is enqueued, on the stream of unpacking
 *
 * Neighbouring steps overlap, with RF_BUFFER_SLOTS slots of buffers. A step is
 * packed when the last step in its slot and those whose bytes it reads or
 * overwrites (rf_step.after) have landed, and no more than RF_STEPS_AHEAD steps
 * ahead of the device.
 *
 * There are two kinds of wires:
 *
 *   stream-ordered (nccl, nvshmem): calls of the library take a stream. Steps
 *       are enqueued one after the other, each whole, while the device is still
 *       at earlier ones; events tie the wire's streams to those of packing and
 *       unpacking. "Landed" says that unpacking waits for the messages.
 *   polled (ucx-cuda): the library knows no streams. The host posts a step when
 *       it has seen the end of its packing and a free receive slot, and has it
 *       unpacked when it has seen its messages complete.
 *
 * Failures: an error of the wire, a CUDA error or the abort flag end
 * rf_lockstep_progress() with a status.
 */
#ifndef RF_CUDA_LOCKSTEP_LOCKSTEP_H
#define RF_CUDA_LOCKSTEP_LOCKSTEP_H

#include "cuda/lockstep/phases.h"

/* Enough to keep the device busy, few enough for the driver's queues. */
#define RF_STEPS_AHEAD 8

/* The first member of a method's state, which hooks cast it to. */
struct rf_lockstep {
    const struct rf_method_env *env;
    const struct rf_lockstep_ops *ops;
    uint64_t direct_bytes; /* REFIT_DIRECT_BYTES, for rf_steps_open() */
    struct rf_steps steps;
    struct rf_phases phases;
    size_t packed, posted, landed; /* so many first steps */
    int64_t moved_ns;              /* when a step last passed a cursor */
    int64_t posted_ns;             /* since when messages are in flight */
    int64_t wire_ns;               /* total time with messages in flight */
};

/* A wire. Hooks that are not described as optional must be there. */
struct rf_lockstep_ops {
    size_t state_bytes; /* of the method's state */

    /* The wire's streams: so many phases from RF_DEVICE_PHASE_OTHERS on, whose
     * ends free a step's send slot. 0: a polled wire. */
    int streams;

    /* Collective: rf_steps_open(); rf_phases_open(); buffers, to phases.send
     * and .recv; the wire's streams, to phases.stream; connections. close()
     * follows a failure. */
    enum rf_status (*open)(struct rf_lockstep *of, struct rf_err *err);

    /* Begins an iteration; NULL: nothing to do. */
    void (*start)(struct rf_lockstep *of, uint64_t iteration);

    /* At each progress of the method: gives the library the time that it needs
     * and returns its asynchronous errors; NULL: none. */
    enum rf_status (*progress)(struct rf_lockstep *of, struct rf_err *err);

    /* The messages of a packed step. A polled wire may start them at once. A
     * stream-ordered one has its streams wait for the packing, and for the
     * unpacking of the last step in the receive slot; the step before has
     * landed. */
    enum rf_status (*post)(struct rf_lockstep *of, size_t step,
                           struct rf_err *err);

    /* Whether the unpacking of a posted step may be enqueued: at a polled wire
     * when its messages are complete, sends included; at a stream-ordered one
     * when the library has taken them, after having the unpacking stream wait
     * for those received. */
    enum rf_status (*arrived)(struct rf_lockstep *of, size_t step, bool *out,
                              struct rf_err *err);

    /* After unpacking is enqueued; NULL: nothing to do. */
    void (*unpacked)(struct rf_lockstep *of, size_t step);

    /* Called once all steps have landed, until no other rank needs this one;
     * NULL: none does. */
    enum rf_status (*idle)(struct rf_lockstep *of, bool *out,
                           struct rf_err *err);

    /* Time on the wire, by events; NULL: the time with messages in flight, by
     * the host's clock. */
    int64_t (*wire_ns)(const struct rf_lockstep *of);

    /* Work in flight is given up. */
    void (*abort)(struct rf_lockstep *of);

    /* The wire, its streams and the buffers, also of an incomplete open. */
    void (*close)(struct rf_lockstep *of);
};

enum rf_status rf_lockstep_open(const struct rf_lockstep_ops *ops,
                                const struct rf_method_env *env, void **out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The hooks of methods. */
enum rf_status rf_lockstep_start(void *opaque, uint64_t iteration,
                                 struct rf_err *err);
enum rf_status rf_lockstep_progress(void *opaque, bool *done,
                                    struct rf_err *err);
void rf_lockstep_timing(void *opaque, struct rf_phase_times *out);
/* Logs where a stuck rank stands (RF_STUCK_NS), then aborts the wire. */
void rf_lockstep_abort(void *opaque);
void rf_lockstep_close(void *opaque);

/* The members of struct rf_method_ops for a method whose state is the engine's;
 * .info, .probe and .open are its own. */
/* clang-format off */
#define RF_LOCKSTEP_HOOKS                                                      \
    .start = rf_lockstep_start, .progress = rf_lockstep_progress,              \
    .timing = rf_lockstep_timing, .abort = rf_lockstep_abort,                  \
    .close = rf_lockstep_close
/* clang-format on */

#endif
