/* Parts of tensors read from files, and compared with the tensors that they are
 * said to be. */
#include "checkpoint/slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define BYTES ((size_t)3 << 20) /* of a tensor: more than one window */

/* Two tensors one after the other; byte `wrong` of the second differs. */
static json_t *write_twins(char *folder, size_t wrong)
{
    AUTO_FREE uint8_t *data = rf_xcalloc(2, BYTES);
    char path[96];
    FILE *file;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/f", folder);
    for (size_t i = 0; i < 2 * BYTES; i++) {
        data[i] = (uint8_t)(i % BYTES * 7 >> 3);
    }
    data[BYTES + wrong] ^= wrong < BYTES ? 1 : 0;
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, 2 * BYTES, file), 2 * BYTES);
    ck_assert_int_eq(fclose(file), 0);
    return quoted_json("{'folder': '%s', 'tensors': {'embed': {'file': 'f', "
                       "'offset': 0}, 'head': {'file': 'f', 'offset': %zu}}, "
                       "'twins': {'embed': 'head'}}",
                       folder, BYTES);
}

static void remove_twins(const char *folder, json_t *files)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/f", folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    json_decref(files);
}

/* Where the twin differs, how much is read from where, and whether that sees
 * the difference. */
static const struct {
    size_t wrong, at, bytes;
    bool seen;
} reads[] = {
    {BYTES - 1, 0, BYTES, true},
    {BYTES - 1, 0, BYTES - 1, false},
    {5, 0, 100, true},
    {BYTES - 1, BYTES - 100, 100, true},
};

LOOP_TEST(test_slices_of_a_twin_are_compared, RF_ARRAY_SIZE(reads))
{
    char folder[] = "/tmp/refit-slices-XXXXXX";
    json_t *files = write_twins(folder, reads[_i].wrong);
    struct rf_checkpoint_slice slice = {reads[_i].at, reads[_i].bytes, BYTES};
    struct rf_checkpoint *checkpoint = NULL;
    AUTO_FREE uint8_t *data = rf_xcalloc(1, BYTES);
    struct rf_err err = {0};
    assert_ok(rf_checkpoint_slices_create(files, NULL, &checkpoint, &err), err);
    assert_ok(rf_checkpoint_slices_select(checkpoint, "embed", &err), err);
    ck_assert_int_eq(rf_checkpoint_slices_read(checkpoint, &slice, data, &err),
                     reads[_i].seen ? RF_ERR_CONFIG : RF_OK);
    if (reads[_i].seen) {
        assert_says(err.text, "head differs from embed");
        assert_says(err.text, "tie_word_embeddings");
    }
    assert_ok(rf_checkpoint_slices_select(checkpoint, "head", &err), err);
    assert_ok(rf_checkpoint_slices_read(checkpoint, &slice, data, &err), err);
    rf_checkpoint_slices_destroy(checkpoint);
    remove_twins(folder, files);
}
