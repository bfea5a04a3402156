/* Folders that appear whole or not at all. */
#include <stdlib.h>

#include "coordinator/artifact/pack.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

AUTO_POINTER(rf_pack, rf_pack_close)

/* Whether the shell command succeeds here. */
static bool holds(const char *command)
{
    return system(command) == 0;
}

FIXTURE(fake_root_enter, fake_root_leave)

TEST(test_pack_has_its_files_and_their_sums)
{
    struct rf_pack *pack = NULL;
    ck_assert(holds("mkdir -p from/b && echo x >from/a && : >from/b/empty"));
    ck_assert_int_eq(rf_pack_begin("new/pack/", &pack, NULL), RF_OK);
    ck_assert_int_eq(rf_pack_write(pack, "c/abc", "abc", 3, NULL), RF_OK);
    ck_assert_int_eq(rf_pack_copy(pack, "copy", "from", NULL), RF_OK);
    ck_assert_uint_eq(rf_pack_bytes(pack), 5);
    ck_assert(!holds("test -e new/pack"));
    ck_assert_int_eq(rf_pack_finish(pack, NULL), RF_OK);
    rf_pack_close(pack);
    ck_assert(holds("cd new/pack && sha256sum --quiet -c SHA256SUMS"));
    /* FIPS 180-2, B.1 */
    ck_assert(holds("grep -qx 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9c"
                    "b410ff61f20015ad  c/abc' new/pack/SHA256SUMS"));
    ck_assert(holds("test \"$(find new -type f | sort | tr '\\n' ' ')\" = "
                    "'new/pack/SHA256SUMS new/pack/c/abc new/pack/copy/a "
                    "new/pack/copy/b/empty '"));
}

TEST(test_pack_without_an_end_leaves_nothing)
{
    struct rf_pack *pack = NULL;
    ck_assert(holds("mkdir old"));
    ck_assert_int_eq(rf_pack_begin("old/new/pack", &pack, NULL), RF_OK);
    ck_assert_int_eq(rf_pack_write(pack, "a/b", "x", 1, NULL), RF_OK);
    rf_pack_close(pack);
    ck_assert(holds("test -d old && test -z \"$(ls -A old)\""));
}

TEST(test_pack_takes_the_place_of_an_empty_folder_only)
{
    struct rf_pack *pack = NULL;
    struct rf_err err = {0};
    ck_assert(holds("mkdir -p empty full/x pack.tmp && : >file && "
                    "ln -s empty link && ln -s absent dangling"));
    assert_fails(rf_pack_begin("full", &pack, &err), RF_ERR_CONFIG, err,
                 "full: is not empty");
    assert_fails(rf_pack_begin("file", &pack, &err), RF_ERR_CONFIG, err,
                 "file: cannot become a folder");
    assert_fails(rf_pack_begin("pack", &pack, &err), RF_ERR_CONFIG, err,
                 "pack.tmp: exists");
    assert_fails(rf_pack_begin("link/", &pack, &err), RF_ERR_CONFIG, err,
                 "link: is a link");
    assert_fails(rf_pack_begin("dangling", &pack, &err), RF_ERR_CONFIG, err,
                 "dangling: is a link");
    assert_fails(rf_pack_begin("empty/.", &pack, &err), RF_ERR_CONFIG, err,
                 "empty/.: is no name of a folder");
    assert_fails(rf_pack_begin("absent/..", &pack, &err), RF_ERR_CONFIG, err,
                 "absent/..: is no name of a folder");
    ck_assert(holds("test -d pack.tmp && test \"$(ls | tr '\\n' ' ')\" = "
                    "'dangling empty file full link pack.tmp '"));
    ck_assert_int_eq(rf_pack_begin("empty", &pack, NULL), RF_OK);
    ck_assert_int_eq(rf_pack_finish(pack, NULL), RF_OK);
    rf_pack_close(pack);
    ck_assert(holds("test -e empty/SHA256SUMS"));
}

TEST(test_pack_refuses_what_it_cannot_hold)
{
    AUTO(rf_pack) *pack = NULL;
    struct rf_err err = {0};
    ck_assert(holds("mkdir -p linked fifo && ln -s /etc linked/x && "
                    "mkfifo fifo/x"));
    ck_assert_int_eq(rf_pack_begin("around/pack", &pack, NULL), RF_OK);
    assert_fails(rf_pack_copy(pack, "a", "linked", &err), RF_ERR_CONFIG, err,
                 "linked/x: is neither a file nor a folder");
    assert_fails(rf_pack_copy(pack, "a", "fifo", &err), RF_ERR_CONFIG, err,
                 "fifo/x: is neither");
    assert_fails(rf_pack_copy(pack, "a", "absent", &err), RF_ERR_IO, err,
                 "absent: cannot read");
    assert_fails(rf_pack_copy(pack, "a", "around", &err), RF_ERR_CONFIG, err,
                 "around/pack: is inside around");
    assert_fails(rf_pack_write(pack, "a\\b", "", 0, &err), RF_ERR_CONFIG, err,
                 "backslash");
}
