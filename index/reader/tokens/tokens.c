/*
 * Text as tokens, for nets that read sequences: a sample is a token, its label is the token that
 * follows. A token is what stands between blanks; a line's end is the token <eos>.
 *
 *   the sample's feature    the token's name, with the value 1; its field is a mark of
 *                           enum drps_sequence_mark
 *   the sample's label      the class that is called as the next token is
 *   text that runs on       the token before a line's first is <eos>: a line of n tokens has n + 1
 *                           samples, an empty one has one, and a file has as many as tokens
 *   lines by themselves     a line of n tokens has n - 1 samples, and begins a sequence
 *   long sequences          after `sequence` samples the next one begins a sequence; so does a file
 *   tokens that are bad     those that can be no class (drps_classes.h) make their line a bad one,
 *                           of which nothing is taken
 */
#include <errno.h>
#include <stdlib.h>

#include "index/layers/drps_layers.h"
#include "index/reader/drps_parse.h"

#define LINE_END "<eos>"

struct tokens {
    uint32_t place; /* of the next sample in its sequence; 0: it begins one */
};

struct token {
    const char *at;
    size_t bytes; /* 0: there is none */
};

static int tokens_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    (void)head;
    (void)n;
    r->state = calloc(1, sizeof(struct tokens));
    r->fields = malloc(sizeof(*r->fields));
    if (!r->state || !r->fields) return drps_err_set(err, -ENOMEM, "no memory to read tokens");
    r->fields[0] = "token";
    r->n_fields = 1;
    return 0;
}

static void tokens_close(struct drps_reader *r)
{
    free(r->state);
}

static void tokens_begin_file(struct drps_reader *r)
{
    struct tokens *t = r->state;
    t->place = 0;
}

/* A token stands behind a blank or at a line's beginning, and each line has an end. */
static size_t tokens_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    return drps_text_count(text, n, ' ') + drps_text_count(text, n, '\t') + 2 * lines;
}

/* Returns the token at *p or behind the blanks there; *p moves behind it. */
static struct token next(const char **p, const char *end)
{
    while (*p < end && drps_is_blank(**p))
        (*p)++;
    struct token t = {*p, 0};
    while (*p < end && !drps_is_blank(**p))
        (*p)++;
    t.bytes = (size_t)(*p - t.at);
    return t;
}

/* A line of which one token is bad has no samples, so that none of them has to be taken back. */
static int check(struct drps_parse *ps, const char *p, const char *end)
{
    for (struct token t = next(&p, end); t.bytes; t = next(&p, end)) {
        const int32_t fault = drps_class_check(t.at, t.bytes);
        if (fault) return drps_parse_bad(ps, t.at, "token %s", drps_class_fault(fault));
    }
    return 0;
}

static int add(struct drps_reader *r, struct drps_parse *ps, struct token t, struct token after)
{
    struct tokens *state = r->state;
    float label;
    if (drps_parse_class(r, ps, after.at, after.at + after.bytes, &label) < 0)
        return DRPS_PARSE_BAD;
    drps_parse_name(ps, 0, t.at, t.bytes, 1);
    if (drps_parse_sample(ps, label, 0) < 0) return DRPS_PARSE_BAD;
    /* In place of the name's own field. */
    ps->out->fields[ps->nnz - 1] = state->place ? DRPS_SEQUENCE_GOES_ON : DRPS_SEQUENCE_BEGINS;
    state->place = (state->place + 1) % r->options.sequence;
    return 0;
}

static int tokens_line(struct drps_reader *r, struct drps_parse *ps, char *line, char *end)
{
    static const struct token line_end = {LINE_END, sizeof(LINE_END) - 1};
    struct tokens *state = r->state;
    const int alone = r->options.sequence_lines;
    const char *p = line;
    if (check(ps, p, end) < 0) return DRPS_PARSE_BAD;
    if (alone) state->place = 0;
    struct token t = alone ? next(&p, end) : line_end;
    for (struct token after = next(&p, end); after.bytes; after = next(&p, end)) {
        if (add(r, ps, t, after) < 0) return DRPS_PARSE_BAD;
        t = after;
    }
    return alone ? 0 : add(r, ps, t, line_end);
}

const struct drps_format drps_format_tokens = {.name = "tokens",
                                               .has_names = 1,
                                               .has_classes = 1,
                                               .has_fields = 1,
                                               .has_sequences = 1,
                                               .open = tokens_open,
                                               .close = tokens_close,
                                               .begin_file = tokens_begin_file,
                                               .bound = tokens_bound,
                                               .line = tokens_line};
