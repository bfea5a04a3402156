/*
 * A C struct and its JSON object, described once. A list of fields generates
 * the struct's members, the table used by encoder and decoder, and the
 * reference in docs/PROTOCOL.md:
 *
 *   #define RF_POINT_FIELDS(F, S)                                        \
 *       F(S, U32, x, REQUIRED, 0, 100, "columns from the left")          \
 *       F(S, TEXT, label, NULLABLE, 1, 64, "what stands there")
 *   RF_SCHEMA_STRUCT(point, RF_POINT_FIELDS)           (header)
 *   RF_SCHEMA_DEFINE(point, RF_POINT_FIELDS)           (source)
 *
 * gives struct rf_point and rf_point_schema. Each field is
 * F(S, KIND, name, HOW, MIN, MAX, "what it means"):
 *
 *   KIND     member                 HOW                 MIN, MAX
 *   BOOL     bool                   presence            -
 *   U32      uint32_t               presence            value
 *   U64      uint64_t               presence            value
 *   I64      int64_t                presence            value
 *   REAL     double                 presence            value
 *   TEXT     char *                 presence            bytes
 *   SECRET   char *, wiped          presence            bytes
 *   TREE     json_t *, an object    presence            -
 *   PAIRS    struct rf_text_pairs   presence            number, bytes of a text
 *   U64S     struct rf_integers     presence            number, value
 *   TEXTS    struct rf_texts        presence            number, bytes
 *   SECRETS  struct rf_texts, wiped presence            number, bytes
 *   PART     struct rf_HOW          another schema      -
 *   MAYBE    struct rf_HOW *        another schema      -
 *   LIST     struct rf_HOW *, n_    another schema      number
 *
 * Presence: REQUIRED; NULLABLE (absent and null mean the same, written as
 * null); OPTIONAL (likewise, left out when written). An absent member is
 * RF_ABSENT_…, false, NULL, or has no elements. A PART is required; a MAYBE
 * (NULL) may be absent and is then left out; a LIST (empty) may be absent
 * unless it must have elements, and is always written. Unknown keys are
 * ignored.
 */
#ifndef RF_TRANSPORT_CONTROL_SCHEMA_H
#define RF_TRANSPORT_CONTROL_SCHEMA_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json_schema.h"

#define RF_ABSENT_U32 UINT32_MAX
#define RF_ABSENT_U64 UINT64_MAX
#define RF_ABSENT_I64 INT64_MIN
#define RF_ABSENT_REAL ((double)NAN)

/* Members of an object with arbitrary keys, in the order of the document;
 * values are texts or null (NULL). */
struct rf_text_pair {
    char *key, *value;
};
struct rf_text_pairs {
    struct rf_text_pair *list;
    size_t n;
};
struct rf_integers {
    uint64_t *list;
    size_t n;
};
struct rf_texts {
    char **list;
    size_t n;
};

enum rf_field_kind {
    RF_FIELD_BOOL,
    RF_FIELD_U32,
    RF_FIELD_U64,
    RF_FIELD_I64,
    RF_FIELD_REAL,
    RF_FIELD_TEXT,
    RF_FIELD_SECRET,
    RF_FIELD_TREE,
    RF_FIELD_PAIRS,
    RF_FIELD_U64S,
    RF_FIELD_TEXTS,
    RF_FIELD_SECRETS,
    RF_FIELD_PART,
    RF_FIELD_MAYBE,
    RF_FIELD_LIST,
};

struct rf_field {
    enum rf_field_kind kind;
    enum rf_presence presence;
    const char *key;
    size_t offset, count_offset; /* in the struct; count_offset: of a LIST */
    double min, max;
    const struct rf_schema *of; /* PART, MAYBE, LIST */
    const char *meaning;
};

struct rf_schema {
    const char *name;
    size_t size; /* of the struct */
    const struct rf_field *fields;
    size_t n_fields;
};

/*
 * Fills the struct `out` from `object`; free with rf_schema_free().
 * RF_ERR_PROTOCOL with the path of the first member that is missing, of another
 * type or out of bounds ("DONE: $.ranks[3].ran.end_ns must be …"); `out` is
 * then empty. `name` is the document's name in errors. Always wipes the secrets
 * in `object`.
 */
enum rf_status rf_schema_decode(const struct rf_schema *schema, json_t *object,
                                const char *name, void *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The object of a struct, its texts cleaned (rf_text_clean) if not UTF-8. A new
 * reference. */
json_t *rf_schema_encode(const struct rf_schema *schema, const void *in);

/* Copies a struct within its bounds, such as a decoded one, to `to`; free with
 * rf_schema_free(). */
void rf_schema_copy(const struct rf_schema *schema, const void *from, void *to);

/* Wipes the secrets of a struct's object, including strings that others
 * reference. */
void rf_schema_wipe(const struct rf_schema *schema, json_t *object);

/* Makes all members absent: the initial state of a struct to encode. */
void rf_schema_init(const struct rf_schema *schema, void *out);

/* A malloc'ed struct with all members absent, for a MAYBE. */
void *rf_schema_new(const struct rf_schema *schema);

/* Frees and wipes the members' memory and makes all absent; keeps the
 * struct. */
void rf_schema_free(const struct rf_schema *schema, void *in);

/* Whether an object may lack the member. */
bool rf_schema_may_be_absent(const struct rf_field *field);

/* The values that a field may have, after the name of their type, for errors and
 * docs/PROTOCOL.md: ", 0 or more", " of 16 bytes", " of at most 32". */
void rf_schema_describe_range(const struct rf_field *field, char *out,
                              size_t size);
void rf_schema_describe_bytes(double min, double max, char *out, size_t size);
void rf_schema_describe_count(const struct rf_field *field, char *out,
                              size_t size);

/* --- The struct and its table of fields ----------------------------------- */

#define RF_SCHEMA_STRUCT(name, FIELDS)                                         \
    struct rf_##name {                                                         \
        FIELDS(RF_SCHEMA_MEMBER, name)                                         \
    };                                                                         \
    extern const struct rf_schema rf_##name##_schema;

#define RF_SCHEMA_DEFINE(name, FIELDS)                                         \
    static const struct rf_field name##_fields[] = {                           \
        FIELDS(RF_SCHEMA_ENTRY, name)};                                        \
    const struct rf_schema rf_##name##_schema = {                              \
        #name, sizeof(struct rf_##name), name##_fields,                        \
        sizeof(name##_fields) / sizeof(name##_fields[0])};

#define RF_SCHEMA_MEMBER(S, KIND, key, HOW, MIN, MAX, meaning)                 \
    RF_SCHEMA_MEMBER_##KIND(key, HOW)
#define RF_SCHEMA_MEMBER_BOOL(key, HOW) bool key;
#define RF_SCHEMA_MEMBER_U32(key, HOW) uint32_t key;
#define RF_SCHEMA_MEMBER_U64(key, HOW) uint64_t key;
#define RF_SCHEMA_MEMBER_I64(key, HOW) int64_t key;
#define RF_SCHEMA_MEMBER_REAL(key, HOW) double key;
#define RF_SCHEMA_MEMBER_TEXT(key, HOW) char *key;
#define RF_SCHEMA_MEMBER_SECRET(key, HOW) char *key;
#define RF_SCHEMA_MEMBER_TREE(key, HOW) json_t *key;
#define RF_SCHEMA_MEMBER_PAIRS(key, HOW) struct rf_text_pairs key;
#define RF_SCHEMA_MEMBER_U64S(key, HOW) struct rf_integers key;
#define RF_SCHEMA_MEMBER_TEXTS(key, HOW) struct rf_texts key;
#define RF_SCHEMA_MEMBER_SECRETS(key, HOW) struct rf_texts key;
#define RF_SCHEMA_MEMBER_PART(key, HOW) struct rf_##HOW key;
#define RF_SCHEMA_MEMBER_MAYBE(key, HOW) struct rf_##HOW *key;
#define RF_SCHEMA_MEMBER_LIST(key, HOW)                                        \
    struct rf_##HOW *key;                                                      \
    size_t n_##key;

#define RF_SCHEMA_ENTRY(S, KIND, key, HOW, MIN, MAX, meaning)                  \
    RF_SCHEMA_ENTRY_##KIND(S, KIND, key, HOW, MIN, MAX, meaning)
#define RF_SCHEMA_PLAIN(S, KIND, key, HOW, MIN, MAX, meaning)                  \
    {RF_FIELD_##KIND,                                                          \
     RF_##HOW,                                                                 \
     #key,                                                                     \
     offsetof(struct rf_##S, key),                                             \
     0,                                                                        \
     (double)(MIN),                                                            \
     (double)(MAX),                                                            \
     NULL,                                                                     \
     meaning},
#define RF_SCHEMA_NESTED(S, KIND, key, HOW, MIN, MAX, meaning, count)          \
    {RF_FIELD_##KIND,                                                          \
     RF_REQUIRED,                                                              \
     #key,                                                                     \
     offsetof(struct rf_##S, key),                                             \
     count,                                                                    \
     (double)(MIN),                                                            \
     (double)(MAX),                                                            \
     &rf_##HOW##_schema,                                                       \
     meaning},
#define RF_SCHEMA_ENTRY_BOOL(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_U32(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_U64(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_I64(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_REAL(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_TEXT(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_SECRET(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_TREE(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_PAIRS(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_U64S(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_TEXTS(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_SECRETS(...) RF_SCHEMA_PLAIN(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_PART(S, KIND, key, HOW, MIN, MAX, meaning)             \
    RF_SCHEMA_NESTED(S, KIND, key, HOW, MIN, MAX, meaning, 0)
#define RF_SCHEMA_ENTRY_MAYBE(...) RF_SCHEMA_ENTRY_PART(__VA_ARGS__)
#define RF_SCHEMA_ENTRY_LIST(S, KIND, key, HOW, MIN, MAX, meaning)             \
    RF_SCHEMA_NESTED(S, KIND, key, HOW, MIN, MAX, meaning,                     \
                     offsetof(struct rf_##S, n_##key))

#endif
