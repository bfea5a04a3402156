/* Telling executables of other machines and what is no program. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/launch/program.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

/* An ELF header for a machine, as a file of the test's folder. */
static const char *elf_file(unsigned machine, bool big)
{
    Elf64_Ehdr header = {.e_type = ET_DYN, .e_version = EV_CURRENT};
    unsigned char swapped[2] = {(unsigned char)(machine >> (big ? 8 : 0)),
                                (unsigned char)(machine >> (big ? 0 : 8))};
    const char *path = launch_file("program", "", 0700);
    FILE *file = fopen(path, "we");
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = big ? ELFDATA2MSB : ELFDATA2LSB;
    memcpy(&header.e_machine, swapped, sizeof(swapped));
    ck_assert_uint_eq(fwrite(&header, sizeof(header), 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

FIXTURE(launch_setup, launch_teardown)

LOOP_TEST(test_program_of_another_machine_is_named_and_refused, 4)
{
    static const struct {
        unsigned machine;
        bool big;
        const char *name;
    } cases[] = {{EM_S390, true, "s390"},
                 {EM_PPC64, false, "ppc64le"},
                 {EM_PPC64, true, "ppc64"},
                 {0x1234, false, "ELF machine 4660"}};
    char own[RF_MACHINE_SIZE], expected[256];
    struct rf_err err = {0};
    const char *path = elf_file(cases[_i].machine, cases[_i].big);
    rf_program_machine("/proc/self/exe", own);
    ck_assert_int_eq(rf_program_check(path, &err), RF_ERR_LAUNCH);
    snprintf(expected, sizeof(expected),
             "%s is an executable for %s; this machine is %s", path,
             cases[_i].name, own);
    ck_assert_str_eq(err.text, expected);
}

TEST(test_program_of_this_machine_passes)
{
    struct rf_err err = {0};
    char own[RF_MACHINE_SIZE];
    assert_ok(rf_program_check("/proc/self/exe", &err), err);
    rf_program_machine("/proc/self/exe", own);
#if defined(__x86_64__)
    ck_assert_str_eq(own, "x86_64");
#elif defined(__aarch64__)
    ck_assert_str_eq(own, "aarch64");
#endif
}

LOOP_TEST(test_program_that_is_only_text_is_refused, 4)
{
    static const char *const texts[] = {"echo harm >harm\n", "",
                                        "\x7f"
                                        "EL",
                                        "#"};
    struct rf_err err = {0};
    const char *path = launch_file("text", texts[_i], 0700);
    char machine[RF_MACHINE_SIZE] = "?";
    assert_fails(rf_program_check(path, &err), RF_ERR_LAUNCH, err,
                 "/text is not a program: ");
    rf_program_machine(path, machine);
    ck_assert_str_eq(machine, "");
}

TEST(test_program_that_cannot_be_judged_passes)
{
    struct rf_err err = {0};
    assert_ok(rf_program_check(launch_file("x", "#!/bin/sh\n", 0700), &err),
              err);
    assert_ok(rf_program_check("/nonexistent/program", &err), err);
    assert_ok(rf_program_check(fake_root, &err), err);
}
