/*
 * The codec of changes: an op carries only the elements that differ from what
 * its destination holds, in chunks as docs/PROTOCOL.md describes ("Chunks of
 * changes"). A rank that holds training weights compares them with their
 * shadow, once (transport/delta/delta_index.h). Chunks received by an op that
 * others wait for are kept as they are, while there is room, and forwarded.
 * What has no base travels dense: in or from staging, what was not kept, and all
 * that goes to a rank that does not hold the base (a resync), from whichever
 * rank is before it on the way. Inside a node, copies compare the source with
 * the destination, and store what differs. With auto they are plain ones: these
 * read one stream and write one, and take no longer than comparing, which reads
 * two.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_CODEC_H
#define RF_TRANSPORT_DELTA_DELTA_CODEC_H

#include "planner/scenario/spec.h"
#include "planner/schedule/schedule.h"
#include "transport/codec/codec.h"

struct rf_delta_codec;
struct rf_delta_zstd;

struct rf_delta_codec_how {
    enum rf_encoding encoding;
    const struct rf_schedule *schedule; /* of the rank's node */
    const struct rf_world *world;
    uint32_t rank;
    bool copies_inside; /* ops inside a node are copies in memory */
    const void *now;    /* its training arena, */
    void *shadow;       /* the shadow; NULL: the rank encodes nothing from it */
    uint64_t bytes;     /* and their size */
    uint32_t unit;      /* bytes of the model's narrowest element */
    struct rf_delta_zstd *zstd; /* NULL: not needed, or auto without it */
};

/* Whether the rank compares its training arena with a shadow; reads neither of
 * them. */
bool rf_delta_codec_needs_shadow(const struct rf_delta_codec_how *how);

/* The memory that the rank's codec takes, shadow included, from how->bytes and
 * how->unit. */
uint64_t rf_delta_codec_bytes(const struct rf_delta_codec_how *how);

/* The codec of one rank; what `how` points to must outlive it. Not for several
 * threads. NULL: no memory. */
struct rf_delta_codec *
rf_delta_codec_create(const struct rf_delta_codec_how *how);
void rf_delta_codec_destroy(struct rf_delta_codec *codec); /* NULL is fine */

/* To be used in rf_method_env. */
const struct rf_codec *rf_delta_codec_of(const struct rf_delta_codec *codec);

/* Writes the version and the checksum of a chunk, of which `out` has the rest:
 * encoding ends with it, and so do tests that make malformed chunks. */
void rf_delta_codec_seal(const struct rf_delta_codec *codec,
                         const struct rf_chunk *chunk, uint8_t *out);

/* The rank's shadow and the destinations of all ranks hold weights of
 * `version`, 1 or more; 0, as at first: of none, so all elements travel. */
void rf_delta_codec_hold(struct rf_delta_codec *codec, uint32_t version);

/* Rank `rank` has said that its destinations hold weights of `version`. Until
 * they are those of the shadow, it gets all elements. */
void rf_delta_codec_hear(struct rf_delta_codec *codec, uint32_t rank,
                         uint32_t version);

/* Before an iteration: sources have changed. `version` is that of the weights,
 * the same on all ranks. */
void rf_delta_codec_begin(struct rf_delta_codec *codec, uint32_t version);
/* After it: the shadow and the rank's own destinations hold the iteration's
 * version. Other ranks hold it only once they have said so. */
void rf_delta_codec_commit(struct rf_delta_codec *codec);
/* Whether the rank did not hold the base in this iteration and was sent whole
 * weights for that. */
bool rf_delta_codec_resynced(const struct rf_delta_codec *codec);
/* And what it took in all, which auto compares with others, unless a rank
 * without the base got all elements; 0: auto learns nothing from it. */
void rf_delta_codec_took(struct rf_delta_codec *codec, int64_t ns);

#endif
