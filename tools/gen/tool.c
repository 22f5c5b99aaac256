/* drps-gen makes synthetic data sets, and tells how far it is. Each kind has a file of its own:
 * ctr.c, classification.c, graph.c and matrix.c. */
#include "tools/gen/tool.h"

#include <inttypes.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "tools/drps_progress.h"
#include "tools/gen/options.h"
#include "tools/gen/output.h"

struct totals {
    uint64_t start_ns;
    uint64_t nnz;
    double labels; /* sum */
    uint64_t positive;
};

/* Write the samples begin .. end - 1 to out. */
static int write_samples(struct drps_cli *cli, const struct gen_tool_options *o, struct gen *g,
                         uint64_t begin, uint64_t end, struct gen_output *out, struct totals *t,
                         struct drps_err *err)
{
    const struct gen_kind *kind = o->kind;
    for (uint64_t i = begin; i < end; i++) {
        double label;
        size_t nnz;
        out->used = (size_t)(kind->line(g, i, out->buf + out->used, &label, &nnz) - out->buf);
        t->nnz += nnz;
        t->labels += label;
        t->positive += label > 0;
        if (out->used < GEN_OUTPUT_BYTES) continue;
        int rc = gen_output_flush(out, err);
        if (rc < 0) return rc;
        if (atomic_load_explicit(drps_cli_stop(), memory_order_relaxed))
            return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted after %ju of %ju samples",
                                (uintmax_t)i + 1, (uintmax_t)o->gen.samples);
        drps_progress_show(cli,
                           &(struct drps_progress){.what = kind->name,
                                                   .unit = "samples",
                                                   .done = i + 1,
                                                   .total = o->gen.samples,
                                                   .seconds = drps_seconds_since(t->start_ns)});
    }
    return gen_output_finish(out, err);
}

static int report(struct drps_cli *cli, const struct gen_tool_options *o, const struct totals *t,
                  uint64_t bytes, struct drps_err *err)
{
    char size[32];
    double n = (double)o->gen.samples, seconds = drps_seconds_since(t->start_ns);
    int matrix = o->kind == &gen_matrix;
    if (!cli->json) {
        drps_log(&cli->log, DRPS_LOG_INFO, "%s, %.1f features each, %s %.3g, %s in %.1f s",
                 drps_cli_counted(o->gen.samples, "sample"), (double)t->nnz / n,
                 matrix ? "mean rating" : "positive share",
                 matrix ? t->labels / n : (double)t->positive / n,
                 drps_size_format(bytes, size, sizeof(size)), seconds);
        return 0;
    }
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", o->kind->name, "samples",
                  drps_json_count(o->gen.samples), "test_samples", drps_json_count(o->test_samples),
                  "nnz", drps_json_count(t->nnz), "bytes", drps_json_count(bytes),
                  matrix ? "mean_rating" : "positive_share",
                  drps_json_real(matrix ? t->labels / n : (double)t->positive / n), "seconds",
                  drps_json_real(seconds));
    return drps_cli_json_print(root, err);
}

static int run(struct drps_cli *cli, struct gen_tool_options *o, struct drps_err *err)
{
    const struct gen_kind *kind = o->kind;
    struct gen_output train = {.fd = -1}, test = {.fd = -1};
    struct totals totals = {.start_ns = drps_clock_ns()};
    struct gen *g = NULL;
    uint64_t n_train = o->gen.samples - o->test_samples;

    int rc = kind->new (&o->gen, &g, err);
    if (rc == 0) rc = gen_output_open(&train, o->output, o->force, kind->line_bytes(g), err);
    if (rc == 0 && o->test_output)
        rc = gen_output_open(&test, o->test_output, o->force, kind->line_bytes(g), err);
    if (rc == 0) rc = write_samples(cli, o, g, 0, n_train, &train, &totals, err);
    if (rc == 0 && o->test_output)
        rc = write_samples(cli, o, g, n_train, o->gen.samples, &test, &totals, err);
    if (rc == 0) rc = report(cli, o, &totals, train.bytes + test.bytes, err);
    gen_output_abort(&train);
    gen_output_abort(&test);
    kind->free(g);
    return rc;
}

int gen_tool_main(int argc, char **argv)
{
    struct gen_tool_options o = {
        .gen = {.samples = 1000000,
                .seed = 1,
                .rows = 1000000,
                .zipf = 1.05,
                .fields = 39,
                .density = 1e-5,
                .nnz = 100,
                .users = 100000,
                .items = 10000,
                .factors = 8,
                .noise = 0.3},
    };
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &gen_tool, &o, argc, argv);
    return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
}
