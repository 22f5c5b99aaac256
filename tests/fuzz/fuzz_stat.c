/*
 * Fuzz target of drps-stat: a plan or a model that was edited and signed anew is shown, also as a
 * page, checked or not. Input: byte 0 options, 1 the plan (support/base_plans.h), 2 what of it is
 * shown: an engine's model of it, or the plan; then edits (support/base_models.h, or
 * support/edited.h).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/base_models.h"
#include "support/fuzz_check.h"
#include "tools/stat/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A plan may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void write_plan(unsigned which, struct script *s, const char *dir)
{
    static struct edited *plans[BASE_PLANS];
    which %= BASE_PLANS;
    if (!plans[which]) plans[which] = edited_read(base_plan(which)->plan, NULL);
    edited_write(plans[which], s, dir);
}

/* The C library lets a program put other streams in the place of its own. A fault is still reported
 * on the descriptor. */
static int run_quietly(int argc, char **argv)
{
    static FILE *nowhere;
    FILE *const out = stdout, *const errors = stderr;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    CHECK(nowhere);
    if (!getenv("DRPS_FUZZ_SHOW")) stdout = stderr = nowhere;
    const int code = stat_tool_main(argc, argv);
    stdout = out;
    stderr = errors;
    return code;
}

/* Questions of models, of which one is asked. An export and JSON both want standard output. */
static char *ask(unsigned which, int json)
{
    static char weights[] = "--weights", export[] = "--export=-", similar[] = "--similar=5";
    return which == 1 ? weights : which == 2 && !json ? export : similar;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s = {data, size};
    static char html[] = "--html=-";
    unsigned bits = script_byte(&s);
    const unsigned plan = script_byte(&s), what = script_byte(&s);
    if (bits & 64) bits = 64; /* a question of its own */
    char path[SCRATCH_PATH_BYTES];
    char *argv[8] = {"drps-stat"};
    int argc = 1;

    (void)snprintf(path, sizeof(path), "%s", scratch_path(base_scratch(), "shown"));
    argv[argc++] = path;
    if (bits & 64) argv[argc++] = html;
    if (bits & 1) argv[argc++] = "--verify";
    if (bits & 2) argv[argc++] = "--json";
    const int question = bits & 1 || bits >> 4 & 3; /* beside one, these two are refused */
    if (bits & 4 && !question) argv[argc++] = "--windows";
    if (bits & 8 && !question) argv[argc++] = "--epoch=2";
    if (!(bits & 1) && bits >> 4 & 3) argv[argc++] = ask(bits >> 4 & 3, bits & 2);
    if (what % 3 == 2)
        write_plan(plan, &s, path);
    else
        base_model_write(base_model(plan, what % 3), &s, path);
    const int code = run_quietly(argc, argv);
    CHECK(code == 0 || code == 1 || code == 2);
    edited_remove(path);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
