/*
 * Fuzz target of drps-predict: a model that was edited and signed anew scores the samples that it
 * was trained on. Whatever the model says, the run ends, with a score a sample or with an error and
 * no file. Input: byte 0 the model's plan (support/base_plans.h), 1 its engine, 2 options, then
 * edits (support/base_models.h).
 */
#include <stdint.h>
#include <string.h>

#include "engine/predict/drps_predict.h"
#include "support/base_models.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A model may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void check_scores(const char *path, const struct drps_predict_result *r)
{
    size_t n, lines = 0;
    char *text = scratch_read(path, &n);
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    CHECK(lines == r->samples);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {NULL, NULL, NULL, "libsvm", "csv", "ratings"};
    struct script s = {data, size};
    const unsigned plan = script_byte(&s), engine = script_byte(&s), options = script_byte(&s);
    const struct base_model *m = base_model(plan, engine);
    const char *input = base_model_input(m);
    char model[SCRATCH_PATH_BYTES], output[SCRATCH_PATH_BYTES];
    const struct drps_predict_options o = {
        .model = model,
        .inputs = &input,
        .inputs_n = 1,
        .output = output,
        .reader = {.format = formats[(options & 7) % 6], .skip_bad_lines = options >> 3 & 1},
        .metrics = options >> 4 & 1,
        .memory_bytes = (uint64_t)(64 + 16 * (options >> 5)) << 20,
    };
    struct drps_predict_result result;
    struct drps_err err = DRPS_ERR_INIT;

    (void)snprintf(model, sizeof(model), "%s", scratch_path(base_scratch(), "model"));
    (void)snprintf(output, sizeof(output), "%s", scratch_path(base_scratch(), "scores"));
    base_model_write(m, &s, model);
    const int rc = drps_predict_run(drps_io_os(), &o, &result, &err);
    fuzz_show("predict", rc, err.text);
    CHECK(rc <= 0 && (rc == 0) == !err.text[0]);
    CHECK(path_exists(output) == (rc == 0));
    if (rc == 0) check_scores(output, &result);
    edited_remove(model);
    if (rc == 0) CHECK(remove(output) == 0);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
