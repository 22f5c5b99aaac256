/*
 * UCI bag of words: three header lines (documents D, words W, lines that follow), then "doc word
 * count". Consecutive lines of one document form one sample with label 0; the key is the word's id.
 *
 *   header not three whole numbers        an error, never skipped
 *   doc outside 1..D, word outside 1..W   bad line
 *   doc smaller than the one before       bad line: the file is not sorted
 *   negative count                        bad line; 0: left out
 *   a document without lines              no sample
 *   a word given twice for one document   counts are added
 *   fewer or more lines than promised     an error at the end of the file; skipped lines count
 */
#include "index/reader/drps_parse.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum { HEADER = 3 };
static const char *const header_names[HEADER] = {"number of documents", "number of words",
                                                 "number of lines"};

/* A document may go on in the next piece: then its words wait here. */
struct docword {
    uint64_t header[HEADER];
    int header_lines; /* read so far */
    uint64_t doc;     /* the current one; 0: none yet */
    uint64_t lines;   /* data lines so far */
    int in_doc, disorder;
    uint64_t last_word;
    uint64_t *keys;
    float *values;
    size_t n, key_cap, value_cap;
};

static int docword_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    (void)head;
    (void)n;
    r->state = calloc(1, sizeof(struct docword));
    return r->state ? 0 : drps_err_set(err, -ENOMEM, "docword reader");
}

static void docword_close(struct drps_reader *r)
{
    struct docword *d = r->state;
    free(d->keys);
    free(d->values);
    free(d);
}

static void docword_begin_file(struct drps_reader *r)
{
    struct docword *d = r->state;
    d->header_lines = 0;
    d->doc = d->lines = 0;
    d->in_doc = d->disorder = 0;
    d->n = 0;
}

static size_t docword_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const struct docword *d = r->state;
    (void)text;
    (void)n;
    return lines + 2 * d->n; /* the waiting words, here and there */
}

/* Put the waiting words in front. */
static void docword_begin_piece(struct drps_reader *r, struct drps_parse *ps)
{
    struct docword *d = r->state;
    if (d->n == 0) return;
    memcpy(ps->out->keys, d->keys, d->n * sizeof(*d->keys));
    memcpy(ps->out->values, d->values, d->n * sizeof(*d->values));
    ps->nnz = d->n;
    d->n = 0;
}

static int header_line(struct docword *d, struct drps_parse *ps, const char *p, const char *end)
{
    const char *name = header_names[d->header_lines];
    const char *q = drps_number_u64(p, &d->header[d->header_lines]);

    while (q && q < end && drps_is_blank(*q))
        q++;
    if (!q || q == p || q < end) {
        ps->bad_fatal = 1;
        return drps_parse_bad(ps, p, "the %s (header line %d of 3) is not a whole number", name,
                              d->header_lines + 1);
    }
    d->header_lines++;
    return 0;
}

/* End the document in progress. */
static int finish(struct docword *d, struct drps_parse *ps)
{
    int disorder = d->disorder;
    if (!d->in_doc) return 0;
    d->in_doc = d->disorder = 0;
    ps->line = d->doc;
    int rc = drps_parse_sample(ps, 0, disorder);
    if (rc < 0) ps->nnz = ps->out->starts[ps->out->n]; /* the document is the bad line */
    return rc;
}

/*
 * Read one of the two ids of a line, in 1..limit. Returns what follows, or NULL after naming the
 * fault.
 */
static const char *parse_id(struct drps_parse *ps, const char *p, const char *what, uint64_t limit,
                            uint64_t *v_out)
{
    const char *q = drps_number_u64(p, v_out);
    if (q && q != p && drps_is_blank(*q)) {
        if (*v_out >= 1 && *v_out <= limit) return q;
        (void)drps_parse_bad(ps, p, "%s is not between 1 and the header's %llu", what,
                             (unsigned long long)limit);
        return NULL;
    }
    (void)drps_parse_bad(ps, p, "%s is not a whole number ('doc word count' is expected)", what);
    return NULL;
}

static int docword_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    struct docword *d = r->state;
    uint64_t doc, word;
    float count;

    p = drps_skip_blanks(p);
    if (p >= end) return 0;
    if (d->header_lines < HEADER) return header_line(d, ps, p, end);
    d->lines++;
    const char *q = parse_id(ps, p, "document", d->header[0], &doc);
    if (!q) return DRPS_PARSE_BAD;
    const char *at = q;
    while (drps_is_blank(*at))
        at++;
    q = parse_id(ps, at, "word", d->header[1], &word);
    if (!q) return DRPS_PARSE_BAD;
    at = q;
    while (drps_is_blank(*at))
        at++;
    q = drps_number_float(at, &count);
    while (q && q < end && drps_is_blank(*q))
        q++;
    if (!q || q != end) return drps_parse_bad_number(ps, at, "count");
    if (count < 0) return drps_parse_bad(ps, at, "count is negative");
    if (doc < d->doc)
        return drps_parse_bad(ps, p, "document comes after document %llu: the file is not sorted",
                              (unsigned long long)d->doc);
    int rc = doc != d->doc ? finish(d, ps) : 0;
    d->doc = doc;
    d->disorder |= d->in_doc && word <= d->last_word;
    d->in_doc = 1;
    d->last_word = word;
    ps->out->keys[ps->nnz] = word;
    ps->out->values[ps->nnz] = count;
    ps->nnz += count != 0;
    return rc;
}

/* Keep the words of the unfinished document for the next piece. */
static int keep(struct docword *d, struct drps_parse *ps, struct drps_err *err)
{
    size_t first = ps->out->starts[ps->out->n], n = ps->nnz - first;

    if (n == 0) return 0;
    if (drps_array_reserve(&d->keys, &d->key_cap, n, sizeof(*d->keys)) < 0 ||
        drps_array_reserve(&d->values, &d->value_cap, n, sizeof(*d->values)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for a document of %zu words", n);
    memcpy(d->keys, ps->out->keys + first, n * sizeof(*d->keys));
    memcpy(d->values, ps->out->values + first, n * sizeof(*d->values));
    d->n = n;
    ps->nnz = first;
    return 0;
}

static int docword_end_piece(struct drps_reader *r, struct drps_parse *ps, int file_ends,
                             struct drps_err *err)
{
    struct docword *d = r->state;
    const char *file = r->chunks.in.name;

    if (!file_ends) return keep(d, ps, err);
    if (finish(d, ps) < 0)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: document %llu: %s", file,
                            (unsigned long long)d->doc, ps->bad_why);
    if (d->header_lines == 0) return 0; /* an empty file */
    if (d->header_lines < HEADER)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: ends within the three header lines", file);
    if (d->lines != d->header[2])
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: the header promises %llu lines, the file has %llu", file,
                            (unsigned long long)d->header[2], (unsigned long long)d->lines);
    return 0;
}

const struct drps_format drps_format_docword = {
    .name = "docword",
    .open = docword_open,
    .close = docword_close,
    .begin_file = docword_begin_file,
    .bound = docword_bound,
    .line = docword_line,
    .begin_piece = docword_begin_piece,
    .end_piece = docword_end_piece,
};
