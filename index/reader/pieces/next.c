/* One piece of samples after another: of text its lines, of other formats what they have ready. */
#include <string.h>

#include "index/reader/pieces/pieces.h"

/* A line that has a sample, or is bad, has the next weight of the file beside the data. */
static int pass_weight(struct drps_reader *r, uint64_t line, struct drps_err *err)
{
    struct drps_weights *w = &r->weights;
    if (w->has) return drps_weights_pass(w, err);
    return drps_err_set(
        err, DRPS_E_FORMAT, "%s ends after %llu weights, and %s %llu of %s is one sample more",
        w->in.name, (unsigned long long)w->passed, r->format->take ? "sample" : "line",
        (unsigned long long)line, r->chunks.in.name);
}

/* The data's file has ended: so must its weights. */
static int end_weights(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_weights *w = &r->weights;
    if (!r->options.weights_n || !w->has) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: a weight, but %s has no more than %llu %s",
                        w->in.name, (unsigned long long)w->line, r->chunks.in.name,
                        (unsigned long long)w->passed,
                        r->format->take ? "samples" : "lines with a sample");
}

/* Whether there is nothing in a line, or a comment alone. */
static int is_blank(const char *p, const char *end)
{
    while (p < end && drps_is_blank(*p))
        p++;
    return p >= end || *p == '#';
}

static int parse_lines(struct drps_reader *r, struct drps_parse *ps, size_t n, struct drps_err *err)
{
    char *stop = ps->out->text + n;
    uint64_t number = r->chunks.file_lines;

    for (char *p = ps->out->text, *feed; p < stop; p = feed + 1) {
        feed = memchr(p, '\n', (size_t)(stop - p)); /* there is one: these are whole lines */
        char *end = feed > p && feed[-1] == '\r' ? feed - 1 : feed;
        const size_t nnz = ps->nnz;
        const uint64_t ended = ps->ended;
        int rc = 0;
        number++;
        ps->line = number;
        ps->weight = r->weights.has ? r->weights.weight : 1;
        const int bad = r->format->line(r, ps, p, end) != 0;
        if (bad && ps->nnz > nnz) ps->nnz = nnz;
        if (!bad && ps->ended == ended) r->blank += (uint64_t)is_blank(p, end);
        if (bad) rc = drps_pieces_handle_bad(r, ps, p, end, number, err);
        if (rc == 0 && r->options.weights_n && (bad || ps->ended > ended))
            rc = pass_weight(r, number, err);
        if (rc < 0) return rc;
    }
    r->lines += number - r->chunks.file_lines;
    r->chunks.file_lines = number;
    return 0;
}

static struct drps_parse begin_parse(const struct drps_reader *r, struct drps_samples *out)
{
    return (struct drps_parse){.out = out,
                               .seed = r->options.hash_seed,
                               .weight = 1,
                               .keep_weightless = r->options.keep_weightless};
}

static void begin_out(const struct drps_reader *r, struct drps_samples *out)
{
    out->starts[0] = 0;
    out->input = r->chunks.next_path - 1;
    out->numbers_each = r->numbers_each;
}

static void end_out(struct drps_reader *r, const struct drps_parse *ps)
{
    struct drps_samples *out = ps->out;
    r->weightless += ps->weightless;
    if (r->numbers_each && !r->format->take) drps_numbers_place(r, out);
    out->all_ones = drps_all_ones(out->values, out->starts[out->n]);
}

/* Parse one piece of the current file of text into `out`, which may stay without a sample. */
static int next_lines(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    struct drps_parse ps = begin_parse(r, out);
    size_t n, lines_end, taken = 0;
    int last;

    int rc = drps_chunks_fill(&r->chunks, &out->text, &out->text_cap, &n, &lines_end, &last, err);
    if (rc == 0) rc = drps_pieces_choose_lines(r, out, lines_end, &taken, err);
    if (rc == 0) rc = drps_chunks_keep(&r->chunks, out->text + taken, n - taken, err);
    if (rc < 0) return rc;
    last = last && taken == n;
    begin_out(r, out);
    ps.made = out->made;
    if (r->format->begin_piece) r->format->begin_piece(r, &ps);
    rc = parse_lines(r, &ps, taken, err);
    if (rc == 0 && r->format->end_piece) rc = r->format->end_piece(r, &ps, last, err);
    if (rc == 0 && last) rc = end_weights(r, err);
    if (rc < 0) return rc;
    end_out(r, &ps);
    r->bytes += taken;
    r->chunks.in_file = !last;
    return 0;
}

/* Take n samples of a format that is not text. */
static int take_samples(struct drps_reader *r, struct drps_parse *ps, size_t n,
                        struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        ps->line = ++r->chunks.file_lines;
        ps->weight = r->weights.has ? r->weights.weight : 1;
        rc = r->format->take(r, ps, err);
        if (rc == 0 && r->options.weights_n) rc = pass_weight(r, ps->line, err);
        r->lines++;
    }
    return rc;
}

/* The next piece of a file that is not text. */
static int next_samples(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    struct drps_parse ps = begin_parse(r, out);
    size_t n = 0, each = 0;
    int rc = r->format->ready(r, &n, &each, err);
    if (rc < 0) return rc;
    if (n == 0) {
        r->chunks.in_file = 0;
        return end_weights(r, err);
    }
    rc = drps_pieces_choose_samples(r, out, &n, each, err);
    if (rc < 0) return rc;
    begin_out(r, out);
    rc = take_samples(r, &ps, n, err);
    if (rc == 0) end_out(r, &ps);
    return rc;
}

static int next_piece(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    return r->format->take ? next_samples(r, out, err) : next_lines(r, out, err);
}

/* Returns 1 while a file is open, 0 at the end. */
static int ensure_file(struct drps_reader *r, struct drps_err *err)
{
    if (!r->chunks.in_file) {
        int rc = drps_chunks_next_file(&r->chunks, err);
        if (rc <= 0) return rc;
        r->begun = 0;
    }
    if (!r->begun && r->format->begin_file && !r->chunks.within) r->format->begin_file(r);
    if (!r->begun && r->options.weights_n) {
        int rc = drps_weights_open(&r->weights, r->options.weights[r->chunks.next_path - 1], err);
        if (rc < 0) return rc;
    }
    r->begun = 1;
    return 1;
}

static void make_one_feature(const struct drps_reader *r, struct drps_samples *out)
{
    if (!r->options.one_feature || r->format->has_names || out->numbers_each || !out->n) return;
    memset(out->keys, 0, out->starts[out->n] * sizeof(*out->keys));
}

int drps_reader_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    out->n = 0;
    out->all_ones = 1;
    if (r->failed) return drps_err_set(err, r->failed, "reading the input has failed before");
    if (r->options.matrix) {
        const int found = drps_matrix_source_next(r, out, err);
        if (found < 0) r->failed = found;
        make_one_feature(r, out);
        return found;
    }
    while (out->n == 0) {
        int rc = ensure_file(r, err);
        if (rc == 0) return 0;
        if (rc > 0) rc = next_piece(r, out, err);
        if (rc < 0) {
            out->n = 0;
            r->failed = rc;
            return rc;
        }
    }
    make_one_feature(r, out);
    return 1;
}
