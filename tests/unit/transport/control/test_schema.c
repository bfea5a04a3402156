/* Structs and their JSON objects, in both directions. */
#include <string.h>

#include "tests/unit/transport/control/reference.h"
#include "tests/unit/unit.h"
#include "transport/control/schema.h"
#include "transport/control/schema_json.h"

#define PEN_FIELDS(F, S)                                                       \
    F(S, TEXT, colour, REQUIRED, 1, 8, "of its ink")                           \
    F(S, U32, width, OPTIONAL, 1, 9, "in points")
RF_SCHEMA_STRUCT(t_pen, PEN_FIELDS)
RF_SCHEMA_DEFINE(t_pen, PEN_FIELDS)

/* Every kind once, and the presences that make a difference. */
#define SHEET_FIELDS(F, S)                                                     \
    F(S, U32, number, REQUIRED, 0, 100, "of the sheet")                        \
    F(S, BOOL, draft, OPTIONAL, 0, 0, "not to be kept")                        \
    F(S, U64, bytes, NULLABLE, 1, INT64_MAX, "of its file")                    \
    F(S, I64, shift, OPTIONAL, -5, 5, "to the right")                          \
    F(S, REAL, scale, OPTIONAL, 0, 10, "of the drawing")                       \
    F(S, TEXT, title, NULLABLE, 0, 5, "at the top")                            \
    F(S, SECRET, key, OPTIONAL, 4, 4, "who may read it")                       \
    F(S, TREE, tree, OPTIONAL, 0, 0, "anything")                               \
    F(S, PAIRS, tags, OPTIONAL, 2, 3, "for searching")                         \
    F(S, U64S, pages, OPTIONAL, 2, 50, "where it is")                          \
    F(S, TEXTS, lines, OPTIONAL, 2, 3, "of its text")                          \
    F(S, SECRETS, keys, OPTIONAL, 2, 3, "of others")                           \
    F(S, PART, pen, t_pen, 0, 0, "it is drawn with")                           \
    F(S, MAYBE, spare, t_pen, 0, 0, "if that one fails")                       \
    F(S, LIST, pens, t_pen, 0, 2, "more of them")
RF_SCHEMA_STRUCT(t_sheet, SHEET_FIELDS)
RF_SCHEMA_DEFINE(t_sheet, SHEET_FIELDS)

#define CROWD_FIELDS(F, S)                                                     \
    F(S, LIST, pens, t_pen, 2, 3, "of which some must be there")
RF_SCHEMA_STRUCT(t_crowd, CROWD_FIELDS)
RF_SCHEMA_DEFINE(t_crowd, CROWD_FIELDS)

/* Single quotes stand for double ones. */
static json_t *object_of(const char *text)
{
    AUTO_FREE char *copy = strdup(text);
    json_t *object;
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    object = json_loads(copy, 0, NULL);
    ck_assert_msg(object != NULL, "%s", copy);
    return object;
}

static enum rf_status decode(const char *text, struct rf_t_sheet *out,
                             struct rf_err *err)
{
    json_auto_t *object = object_of(text);
    enum rf_status status =
        rf_schema_decode(&rf_t_sheet_schema, object, "SHEET", out, err);
    return status;
}

static void decode_well(const char *text, struct rf_t_sheet *out)
{
    struct rf_err err = {.text = ""};
    assert_ok(decode(text, out, &err), err);
}

static const char whole[] =
    "{'number': 7, 'draft': true, 'bytes': 9223372036854775807, 'shift': -5, "
    "'scale': 2.5, 'title': 'abc', 'key': 'k123', 'tree': {'x': [1]}, "
    "'tags': {'b': 'bb', 'a': null}, 'pages': [3, 50], 'lines': ['l1', ''], "
    "'keys': ['s1'], 'pen': {'colour': 'red', 'width': 2}, "
    "'spare': {'colour': 'blue'}, "
    "'pens': [{'colour': 'green'}, {'colour': 'black', 'width': 9}]}";

TEST(test_schema_decodes_and_copies_every_kind)
{
    struct rf_t_sheet sheet, decoded;
    decode_well(whole, &decoded);
    rf_schema_copy(&rf_t_sheet_schema, &decoded, &sheet);
    rf_schema_free(&rf_t_sheet_schema, &decoded);
    ck_assert_uint_eq(sheet.number, 7);
    ck_assert(sheet.draft);
    ck_assert_uint_eq(sheet.bytes, INT64_MAX);
    ck_assert_int_eq(sheet.shift, -5);
    ck_assert_double_eq(sheet.scale, 2.5);
    ck_assert_str_eq(sheet.title, "abc");
    ck_assert_str_eq(sheet.key, "k123");
    ck_assert_uint_eq(json_array_size(json_object_get(sheet.tree, "x")), 1);
    ck_assert_uint_eq(sheet.tags.n, 2);
    ck_assert_str_eq(sheet.tags.list[0].key, "b");
    ck_assert_str_eq(sheet.tags.list[0].value, "bb");
    ck_assert_str_eq(sheet.tags.list[1].key, "a");
    ck_assert_ptr_null(sheet.tags.list[1].value);
    ck_assert_uint_eq(sheet.pages.n, 2);
    ck_assert_uint_eq(sheet.pages.list[1], 50);
    ck_assert_uint_eq(sheet.lines.n, 2);
    ck_assert_str_eq(sheet.lines.list[0], "l1");
    ck_assert_str_eq(sheet.keys.list[0], "s1");
    ck_assert_str_eq(sheet.pen.colour, "red");
    ck_assert_uint_eq(sheet.pen.width, 2);
    ck_assert_str_eq(sheet.spare->colour, "blue");
    ck_assert_uint_eq(sheet.spare->width, RF_ABSENT_U32);
    ck_assert_uint_eq(sheet.n_pens, 2);
    ck_assert_str_eq(sheet.pens[1].colour, "black");
    ck_assert_uint_eq(sheet.pens[1].width, 9);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
}

static void check_absent(const struct rf_t_sheet *sheet)
{
    ck_assert(!sheet->draft);
    ck_assert_uint_eq(sheet->bytes, RF_ABSENT_U64);
    ck_assert_int_eq(sheet->shift, RF_ABSENT_I64);
    ck_assert(isnan(sheet->scale));
    ck_assert_ptr_null(sheet->title);
    ck_assert_ptr_null(sheet->key);
    ck_assert_ptr_null(sheet->tree);
    ck_assert_ptr_null(sheet->tags.list);
    ck_assert_uint_eq(sheet->tags.n, 0);
    ck_assert_ptr_null(sheet->pages.list);
    ck_assert_ptr_null(sheet->lines.list);
    ck_assert_ptr_null(sheet->keys.list);
    ck_assert_ptr_null(sheet->spare);
    ck_assert_ptr_null(sheet->pens);
    ck_assert_uint_eq(sheet->n_pens, 0);
}

LOOP_TEST(test_schema_takes_null_and_missing_as_absent, 3)
{
    static const char *const texts[] = {
        "{'number': 1, 'pen': {'colour': 'red'}}",
        "{'number': 1, 'pen': {'colour': 'red', 'width': null}, 'draft': null, "
        "'bytes': null, 'shift': null, 'scale': null, 'title': null, "
        "'key': null, 'tree': null, 'tags': null, 'pages': null, "
        "'lines': null, 'keys': null, 'spare': null, 'pens': null}",
        "{'number': 1, 'pen': {'colour': 'red', 'later': 1}, 'later': [{}]}",
    };
    struct rf_t_sheet sheet;
    decode_well(texts[_i], &sheet);
    check_absent(&sheet);
    ck_assert_uint_eq(sheet.pen.width, RF_ABSENT_U32);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
}

TEST(test_schema_tells_empty_from_absent)
{
    struct rf_t_sheet sheet;
    decode_well("{'number': 1, 'pen': {'colour': 'red'}, 'title': '', "
                "'tags': {}, 'pages': [], 'lines': []}",
                &sheet);
    ck_assert_str_eq(sheet.title, "");
    ck_assert_ptr_nonnull(sheet.tags.list);
    ck_assert_ptr_nonnull(sheet.pages.list);
    ck_assert_ptr_nonnull(sheet.lines.list);
    ck_assert_uint_eq(sheet.tags.n + sheet.pages.n + sheet.lines.n, 0);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
}

#define PEN "'pen': {'colour': 'red'}"

static const struct {
    const char *text, *why;
} refused[] = {
    {"{" PEN "}", "SHEET: $.number: is missing"},
    {"{'number': null, " PEN "}", "SHEET: $.number: is missing"},
    {"{'number': 1}", "SHEET: $.pen: is missing"},
    {"{'number': 1, 'pen': {}}", "SHEET: $.pen.colour: is missing"},
    {"{'number': 1, 'pen': []}", "SHEET: $.pen: must be an object"},
    {"{'number': '1', " PEN "}",
     "SHEET: $.number: must be an integer from 0 to 100"},
    {"{'number': 1.5, " PEN "}",
     "SHEET: $.number: must be an integer from 0 to 100"},
    {"{'number': 101, " PEN "}",
     "SHEET: $.number: must be an integer from 0 to 100"},
    {"{'number': -1, " PEN "}",
     "SHEET: $.number: must be an integer from 0 to 100"},
    {"{'number': 1, " PEN ", 'draft': 1}",
     "SHEET: $.draft: must be true or false"},
    {"{'number': 1, " PEN ", 'bytes': 0}",
     "SHEET: $.bytes: must be an integer, 1 or more"},
    {"{'number': 1, " PEN ", 'shift': -6}",
     "SHEET: $.shift: must be an integer from -5 to 5"},
    {"{'number': 1, " PEN ", 'scale': 10.5}",
     "SHEET: $.scale: must be a number from 0 to 10"},
    {"{'number': 1, " PEN ", 'scale': '1'}",
     "SHEET: $.scale: must be a number from 0 to 10"},
    {"{'number': 1, " PEN ", 'title': 5}",
     "SHEET: $.title: must be a string of at most 5 bytes"},
    {"{'number': 1, " PEN ", 'title': 'abcdef'}",
     "SHEET: $.title: must be a string of at most 5 bytes"},
    {"{'number': 1, " PEN ", 'key': 'abc'}",
     "SHEET: $.key: must be a string of 4 bytes"},
    {"{'number': 1, " PEN ", 'tree': []}", "SHEET: $.tree: must be an object"},
    {"{'number': 1, " PEN ", 'tags': []}",
     "SHEET: $.tags: must be an object of at most 2 members"},
    {"{'number': 1, " PEN ", 'tags': {'a': null, 'b': null, 'c': null}}",
     "SHEET: $.tags: must be an object of at most 2 members"},
    {"{'number': 1, " PEN ", 'tags': {'a': 'x', 'b': 'long'}}",
     "SHEET: $.tags.b: must be a string of at most 3 bytes"},
    {"{'number': 1, " PEN ", 'pages': 1}",
     "SHEET: $.pages: must be a list of at most 2"},
    {"{'number': 1, " PEN ", 'pages': [1, 2, 3]}",
     "SHEET: $.pages: must be a list of at most 2"},
    {"{'number': 1, " PEN ", 'pages': [1, 51]}",
     "SHEET: $.pages[1]: must be an integer from 0 to 50"},
    {"{'number': 1, " PEN ", 'pages': [null]}",
     "SHEET: $.pages[0]: must be an integer from 0 to 50"},
    {"{'number': 1, " PEN ", 'lines': ['a', 7]}",
     "SHEET: $.lines[1]: must be a string of at most 3 bytes"},
    {"{'number': 1, " PEN ", 'keys': ['a', 'b', 'c']}",
     "SHEET: $.keys: must be a list of at most 2"},
    {"{'number': 1, " PEN ", 'spare': {}}",
     "SHEET: $.spare.colour: is missing"},
    {"{'number': 1, " PEN ", 'spare': 'x'}",
     "SHEET: $.spare: must be an object"},
    {"{'number': 1, " PEN ", 'pens': {}}",
     "SHEET: $.pens: must be a list of at most 2"},
    {"{'number': 1, " PEN ", 'pens': [{'colour': 'a'}, {'colour': ''}]}",
     "SHEET: $.pens[1].colour: must be a string of 1 to 8 bytes"},
    {"{'number': 1, " PEN ", 'pens': [{'colour': 'a'}, null]}",
     "SHEET: $.pens[1]: must be an object"},
    {"[]", "SHEET: $: must be an object"},
};

LOOP_TEST(test_schema_refuses_with_the_path, RF_ARRAY_SIZE(refused))
{
    struct rf_t_sheet sheet;
    struct rf_err err = {.text = ""};
    ck_assert_int_eq(decode(refused[_i].text, &sheet, &err), RF_ERR_PROTOCOL);
    ck_assert_int_eq(err.status, RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text, refused[_i].why);
    check_absent(&sheet);
    ck_assert_ptr_null(sheet.pen.colour);
}

TEST(test_schema_refuses_without_telling_why)
{
    struct rf_t_sheet sheet;
    ck_assert_int_eq(decode("{'number': 500}", &sheet, NULL), RF_ERR_PROTOCOL);
}

LOOP_TEST(test_schema_wants_as_many_as_it_names, 4)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "C: $.pens: is missing"},
        {"{'pens': []}", "C: $.pens: must be a list of 2 to 3"},
        {"{'pens': [{'colour': 'a'}]}", "C: $.pens: must be a list of 2 to 3"},
        {"{'pens': [{}, {}, {}, {}]}", "C: $.pens: must be a list of 2 to 3"},
    };
    struct rf_t_crowd crowd;
    struct rf_err err = {.text = ""};
    json_auto_t *object = object_of(cases[_i].text);
    ck_assert_int_eq(
        rf_schema_decode(&rf_t_crowd_schema, object, "C", &crowd, &err),
        RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text, cases[_i].why);
}

/* What was decoded, encoded again, as one line. */
static void expect_encoded(const char *text, const char *wanted)
{
    struct rf_t_sheet sheet;
    json_auto_t *got, *want = object_of(wanted);
    AUTO_FREE char *shown;
    decode_well(text, &sheet);
    got = rf_schema_encode(&rf_t_sheet_schema, &sheet);
    shown = json_dumps(got, 0);
    ck_assert_msg(json_equal(got, want), "%s", shown);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
}

TEST(test_schema_encodes_what_it_decoded)
{
    expect_encoded(whole, whole);
    expect_encoded("{'number': 1, 'pen': {'colour': 'red'}, 'later': 1}",
                   "{'number': 1, 'pen': {'colour': 'red'}, 'bytes': null, "
                   "'title': null, 'pens': []}");
}

#define A_PEN                                                                  \
    "{'type': 'object', 'additionalProperties': false, 'properties': "         \
    "{'colour': {'type': 'string', 'minLength': 1}, 'width': {'type': "        \
    "'integer', 'minimum': 1, 'maximum': 9}}, 'required': ['colour']}"
static const struct {
    const char *key, *schema;
} described[] = {
    {"number", "{'type': 'integer', 'minimum': 0, 'maximum': 100}"},
    {"draft", "{'type': 'boolean'}"},
    {"bytes", "{'anyOf': [{'type': 'integer', 'minimum': 1, 'maximum': "
              "9223372036854775807}, {'type': 'null'}]}"},
    {"shift", "{'type': 'integer', 'minimum': -5, 'maximum': 5}"},
    {"scale", "{'type': 'number', 'minimum': 0.0, 'maximum': 10.0}"},
    {"title", "{'anyOf': [{'type': 'string'}, {'type': 'null'}]}"},
    {"key", "{'type': 'string', 'minLength': 1}"},
    {"tree", "{'type': 'object'}"},
    {"tags", "{'type': 'object', 'additionalProperties': {'anyOf': [{'type': "
             "'string'}, {'type': 'null'}]}}"},
    {"pages", "{'type': 'array', 'minItems': 0, 'maxItems': 2, 'items': "
              "{'type': 'integer', 'minimum': 0, 'maximum': 50}}"},
    {"keys", "{'type': 'array', 'minItems': 0, 'maxItems': 2, 'items': "
             "{'type': 'string'}}"},
    {"pen", A_PEN},
    {"spare", A_PEN},
    {"pens",
     "{'type': 'array', 'minItems': 0, 'maxItems': 2, 'items': " A_PEN "}"},
};

LOOP_TEST(test_schema_describes_in_json_what_it_encodes,
          RF_ARRAY_SIZE(described))
{
    json_auto_t *got = rf_schema_json(&rf_t_sheet_schema);
    json_auto_t *want = object_of(described[_i].schema);
    json_auto_t *needed =
        object_of("{'required': ['number', 'bytes', 'title', 'pen', 'pens']}");
    const json_t *one =
        json_object_get(json_object_get(got, "properties"), described[_i].key);
    AUTO_FREE char *shown = json_dumps(one, 0);
    ck_assert_msg(json_equal(one, want), "%s", shown);
    ck_assert(json_equal(json_object_get(got, "required"),
                         json_object_get(needed, "required")));
}

LOOP_TEST(test_schema_wipes_secrets_from_the_document, 5)
{
    static const char *const texts[] = {
        "{'number': 1, 'key': 'k123', 'keys': ['s1', 's22'], " PEN "}",
        /* Also where another member is refused afterwards. */
        "{'number': 1, 'key': 'k123', 'keys': ['s1', 's22'], 'pen': 1}",
        "{'number': 'x', 'key': 'k123', 'keys': ['s1', 's22'], " PEN "}",
        /* Or the secrets themselves. */
        "{'number': 1, 'keys': ['s1', 's22', 's3'], " PEN "}",
        "{'number': 1, 'key': 'k1234', " PEN "}",
    };
    json_auto_t *object = object_of(texts[_i]);
    struct rf_t_sheet sheet;
    const json_t *keys = json_object_get(object, "keys"), *key;
    size_t i;
    if (rf_schema_decode(&rf_t_sheet_schema, object, "S", &sheet, NULL) ==
        RF_OK) {
        ck_assert_str_eq(sheet.key, "k123");
        ck_assert_str_eq(sheet.keys.list[1], "s22");
        rf_schema_free(&rf_t_sheet_schema, &sheet);
    }
    if (json_object_get(object, "key") != NULL) {
        ck_assert_str_eq(json_text_at(object, "key"), "");
    }
    json_array_foreach (keys, i, key) {
        ck_assert_str_eq(json_string_value(key), "");
    }
}

TEST(test_schema_encodes_texts_that_are_no_utf8)
{
    char cut[] = "a\xc3", bad[] = "\xff";
    struct rf_text_pair pair = {.key = (char[]){"b"}, .value = bad};
    struct rf_t_pen pen = {.colour = cut, .width = RF_ABSENT_U32};
    struct rf_t_sheet sheet, got;
    struct rf_err err = {.text = ""};
    json_t *object;
    rf_schema_init(&rf_t_sheet_schema, &sheet);
    sheet.number = 1;
    sheet.title = cut;
    sheet.pen.colour = cut;
    sheet.tags = (struct rf_text_pairs){&pair, 1};
    sheet.lines = (struct rf_texts){(char *[]){cut, bad}, 2};
    sheet.pens = &pen;
    sheet.n_pens = 1;
    object = rf_schema_encode(&rf_t_sheet_schema, &sheet);
    assert_ok(rf_schema_decode(&rf_t_sheet_schema, object, "SHEET", &got, &err),
              err);
    json_decref(object);
    ck_assert_str_eq(got.title, "a?");
    ck_assert_str_eq(got.pen.colour, "a?");
    ck_assert_str_eq(got.tags.list[0].value, "?");
    ck_assert_uint_eq(got.lines.n, 2);
    ck_assert_str_eq(got.lines.list[0], "a?");
    ck_assert_str_eq(got.lines.list[1], "?");
    ck_assert_str_eq(got.pens[0].colour, "a?");
    ck_assert_str_eq(cut, "a\xc3"); /* as it was */
    rf_schema_free(&rf_t_sheet_schema, &got);
}

TEST(test_schema_init_makes_all_absent)
{
    struct rf_t_sheet sheet;
    AUTO_FREE struct rf_t_pen *pen = rf_schema_new(&rf_t_pen_schema);
    memset(&sheet, 0x5a, sizeof(sheet));
    rf_schema_init(&rf_t_sheet_schema, &sheet);
    check_absent(&sheet);
    ck_assert_uint_eq(sheet.number, RF_ABSENT_U32);
    ck_assert_uint_eq(sheet.pen.width, RF_ABSENT_U32);
    ck_assert_uint_eq(pen->width, RF_ABSENT_U32);
}

TEST(test_schema_free_makes_all_absent)
{
    struct rf_t_sheet sheet;
    decode_well(whole, &sheet);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
    check_absent(&sheet);
    rf_schema_free(&rf_t_sheet_schema, &sheet);
}

TEST(test_schema_prints_its_reference)
{
    static const char wanted[] =
        "| key | value | meaning |\n|---|---|---|\n| `number` | integer from 0 "
        "to 100 | of the sheet |\n| `draft` | true or false, may be absent | "
        "not to be kept |\n| `bytes` | integer, 1 or more, may be null | of "
        "its file |\n| `shift` | integer from -5 to 5, may be absent | to the "
        "right |\n| `scale` | number from 0 to 10, may be absent | of the "
        "drawing |\n| `title` | string of at most 5 bytes, may be null | at "
        "the top |\n| `key` | secret string of 4 bytes, may be absent | who "
        "may read it |\n| `tree` | object, may be absent | anything |\n| "
        "`tags` | object of at most 2 members: string of at most 3 bytes or "
        "null, may be absent | for searching |\n| `pages` | list of at most 2: "
        "integer from 0 to 50, may be absent | where it is |\n| `lines` | list "
        "of at most 2: string of at most 3 bytes, may be absent | of its text "
        "|\n| `keys` | list of at most 2: secret string of at most 3 bytes, "
        "may be absent | of others |\n| `pen` | `pen` | it is drawn with |\n| "
        "`spare` | `pen`, may be absent | if that one fails |\n| `pens` | list "
        "of at most 2: `pen`, may be absent | more of them |\n";
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(to);
    reference_print_schema(&rf_t_sheet_schema, to);
    fclose(to);
    ck_assert_str_eq(text, wanted);
}
