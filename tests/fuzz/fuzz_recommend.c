/*
 * Fuzz target of drps-recommend: a model of ratings that was edited and signed anew recommends to
 * its users. Whatever the model says, the run ends, with at most n items for each user, or with an
 * error and no file. Input: byte 0 the model's plan, 1 its engine, 2 and 3 options, then edits
 * (support/base_models.h).
 */
#include <stdint.h>
#include <string.h>

#include "engine/recommend/drps_recommend.h"
#include "support/base_models.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A model may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* The lines of the output, each of which ends. */
static size_t count_lines(const char *path)
{
    size_t n, lines = 0;
    char *text = scratch_read(path, &n);
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    CHECK(!n || text[n - 1] == '\n');
    free(text);
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum base_plan plans[] = {BASE_GRID, BASE_CIRCULATING, BASE_LOR};
    struct script s = {data, size};
    const unsigned plan = script_byte(&s), engine = script_byte(&s), options = script_byte(&s),
                   more = script_byte(&s);
    const struct base_model *m = base_model(plans[plan % 3], engine);
    const char *input = base_model_input(m);
    char model[SCRATCH_PATH_BYTES], output[SCRATCH_PATH_BYTES];
    const struct drps_recommend_options o = {
        .model = model,
        .output = output,
        .n = 1 + more % 16,
        .json = options & 1,
        .similar = options >> 1 & 1,
        .seen = &input,
        .seen_n = options >> 2 & 1,
        .fold_in = &input,
        .fold_in_n = options >> 3 & 1,
        .fold_l2 = 0.1,
        .threads = 1 + (more >> 7),
        .products = options >> 4 & 1 ? DRPS_PRODUCTS_OPENBLAS : DRPS_PRODUCTS_OWN,
        .memory_bytes = (uint64_t)(64 + 16 * (options >> 6)) << 20,
    };
    struct drps_recommend_result result;
    struct drps_err err = DRPS_ERR_INIT;

    (void)snprintf(model, sizeof(model), "%s", scratch_path(base_scratch(), "model"));
    (void)snprintf(output, sizeof(output), "%s", scratch_path(base_scratch(), "best"));
    base_model_write(m, &s, model);
    const int rc = drps_recommend_run(drps_io_os(), &o, &result, &err);
    fuzz_show("recommend", rc, err.text);
    CHECK(rc <= 0 && (rc == 0) == !err.text[0]);
    CHECK(path_exists(output) == (rc == 0));
    if (rc == 0) CHECK(count_lines(output) == (o.json ? result.queries : result.recommended));
    if (rc == 0) CHECK(result.recommended <= result.queries * o.n);
    edited_remove(model);
    if (rc == 0) CHECK(remove(output) == 0);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
