/*
 * Fuzz target of drps-import: any file must give a model that opens, whose parameters verify, or an
 * error with a text and no model. Input: byte 0 the format (0 liblinear, 1 vw, 2 libffm, else by
 * the first bytes), the rest is the file.
 */
#include <stdint.h>
#include <stdlib.h>

#include "engine/import/drps_import.h"
#include "engine/publish/drps_modeldir.h"
#include "support/fuzz_check.h"
#include "support/scratch.h"

enum { MODEL_MEMORY = 32 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A file may promise more than there is memory: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static struct scratch scratch;

static void remove_scratch(void)
{
    scratch_end(&scratch);
}

static struct scratch *begun(void)
{
    if (scratch.dir[0]) return &scratch;
    scratch_begin(&scratch);
    CHECK(atexit(remove_scratch) == 0);
    return &scratch;
}

static void check_model(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    CHECK(drps_modeldir_open(drps_io_os(), path, MODEL_MEMORY, &md, &err) == 0);
    CHECK(drps_modeldir_verify(md, NULL, &err) == 0);
    drps_modeldir_close(md);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drps_err err = DRPS_ERR_INIT, ignored = DRPS_ERR_INIT;
    struct drps_import_result result;
    struct scratch *s = begun();
    const unsigned which = size ? data[0] : 0;
    const char *const file = scratch_file(s, "file", size ? data + 1 : data, size ? size - 1 : 0);
    const char *const model = scratch_path(s, "model");
    const struct drps_import_options options = {.input = file,
                                                .model_path = model,
                                                .format = which < 3 ? drps_import_formats()[which]
                                                                    : NULL};
    const int rc = drps_import_run(drps_io_os(), &options, &result, &err);
    if (rc == 0) {
        check_model(model);
        CHECK(drps_io_remove_tree(drps_io_os(), model, &ignored) == 0);
        return 0;
    }
    CHECK(rc < 0 && err.text[0]);
    CHECK(!path_exists(model) && !path_exists(scratch_path(s, "model.trained")));
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
