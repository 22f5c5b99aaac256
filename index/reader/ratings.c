/*
 * Ratings: "user item rating [timestamp, or, if asked for, a weight]", separated by "::", tab,
 * comma or blanks, whichever the first line of the file has (looked for in this order). Ids are
 * strings. A first line whose third column begins with a letter is a header. Where labels are
 * optional, the rating may be missing; a first line of two columns is a header if the first is user
 * or userid.
 */
#include "index/reader/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

enum { COLUMNS = 4 };

struct ratings {
    char separator; /* ':' for "::", ' ' for runs of blanks, 0: not known yet */
    int first_line; /* of the file, still to come */
};

struct column {
    char *p, *end;
};

static int ratings_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    static const char *const fields[] = {"user", "item"};

    (void)head;
    (void)n;
    r->state = calloc(1, sizeof(struct ratings));
    r->fields = malloc(sizeof(fields));
    if (!r->state || !r->fields) return drps_err_set(err, -ENOMEM, "ratings reader");
    memcpy(r->fields, fields, sizeof(fields));
    r->n_fields = 2;
    return 0;
}

static void ratings_close(struct drps_reader *r)
{
    free(r->state);
}

static void ratings_begin_file(struct drps_reader *r)
{
    struct ratings *f = r->state;
    f->separator = 0;
    f->first_line = 1;
}

static size_t ratings_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    (void)text;
    (void)n;
    return 2 * lines;
}

static char find_separator(const char *p, const char *end)
{
    for (const char *q = p; q + 1 < end; q++)
        if (q[0] == ':' && q[1] == ':') return ':';
    if (memchr(p, '\t', (size_t)(end - p))) return '\t';
    if (memchr(p, ',', (size_t)(end - p))) return ',';
    return ' ';
}

/* Find the next separator, or the end of the line. */
static char *column_end(char separator, char *p, char *end)
{
    for (; p < end; p++) {
        if (separator == ' ' ? drps_is_blank(*p)
                             : *p == separator && (separator != ':' || p[1] == ':'))
            break;
    }
    return p;
}

static void trim(struct column *c)
{
    while (c->p < c->end && *c->p == ' ')
        c->p++;
    while (c->end > c->p && c->end[-1] == ' ')
        c->end--;
}

/* Cut the line into columns; returns their number, at most COLUMNS + 1. */
static size_t split(char separator, char *p, char *end, struct column *columns)
{
    size_t n = 0;
    for (;;) {
        if (n == COLUMNS) return COLUMNS + 1;
        columns[n].p = p;
        columns[n].end = p = column_end(separator, p, end);
        if (separator != ' ') trim(&columns[n]);
        n++;
        if (separator == ' ') p = drps_skip_blanks(p);
        if (p >= end) return n;
        if (separator != ' ') p += separator == ':' ? 2 : 1;
    }
}

/* `missing_too`: the text may be one that stands for a missing number, which is no header's. */
static int is_header(const struct column *rating, int missing_too)
{
    float v;
    if (missing_too && drps_columns_missing(rating->p, rating->end)) return 0;
    if (rating->p == rating->end || drps_number_float(rating->p, &v)) return 0;
    char c = (char)(*rating->p | 0x20);
    return c >= 'a' && c <= 'z' && strcmp(drps_number_why(rating->p), "is NaN or infinite") != 0;
}

/* Returns 1 for the first field of a header of two columns; "user7" is a user. */
static int names_users(const struct column *c)
{
    static const char *const names[] = {"user", "users", "userid", "user_id"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == (size_t)(c->end - c->p) &&
            strncasecmp(names[i], c->p, strlen(names[i])) == 0)
            return 1;
    return 0;
}

/* Read the fourth column of n as the weight. */
static int take_weight(struct drps_parse *ps, size_t n, const struct column *c)
{
    if (n < COLUMNS) return drps_parse_bad(ps, NULL, "%zu columns, and the weight is column 4", n);
    if (c->p == c->end || drps_number_float(c->p, &ps->weight) != c->end)
        return drps_parse_bad_number(ps, c->p, "weight");
    return ps->weight < 0 ? drps_parse_bad(ps, c->p, "weight is negative") : 0;
}

/* Refuses a rating; where names look quoted, they may have been cut within the quotes. */
static int bad_rating(struct drps_parse *ps, const struct column *c)
{
    if (*c[0].p != '"' && *c[1].p != '"') return drps_parse_bad_number(ps, c[2].p, "rating");
    return drps_parse_bad(ps, c[2].p,
                          "rating %s; quotes around names are not read: separate columns by tabs",
                          drps_number_why(c[2].p));
}

static int ratings_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    struct ratings *f = r->state;
    struct column c[COLUMNS + 1];
    float rating = r->options.label_missing;

    while (end > p && drps_is_blank(end[-1]))
        end--;
    char *start = drps_skip_blanks(p);
    if (start >= end) return 0;
    if (!f->separator) f->separator = find_separator(start, end);
    if (f->separator == ' ') p = start;
    size_t n = split(f->separator, p, end, c);
    const int first = f->first_line;
    const int no_rating = n == 2 && r->options.label_optional;
    f->first_line = 0;
    if ((n < 3 && !no_rating) || n > COLUMNS)
        return drps_parse_bad(ps, p, "%s columns, expected user, item%s and perhaps a timestamp",
                              n > COLUMNS                 ? "more than 4"
                              : r->options.label_optional ? "fewer than 2"
                                                          : "fewer than 3",
                              r->options.label_optional ? ", perhaps a rating" : ", rating");
    if (first && (no_rating ? names_users(&c[0]) : is_header(&c[2], r->options.label_ignored)))
        return 0;
    if (c[0].p == c[0].end) return drps_parse_bad(ps, c[0].p, "user is empty");
    if (c[1].p == c[1].end) return drps_parse_bad(ps, c[1].p, "item is empty");
    if (!no_rating && !r->options.label_ignored &&
        (c[2].p == c[2].end || drps_number_float(c[2].p, &rating) != c[2].end))
        return bad_rating(ps, c);
    if (r->options.weight && take_weight(ps, n, &c[3]) < 0) return DRPS_PARSE_BAD;
    drps_parse_name(ps, 0, c[0].p, (size_t)(c[0].end - c[0].p), 1);
    drps_parse_name(ps, 1, c[1].p, (size_t)(c[1].end - c[1].p), 1);
    return drps_parse_sample(ps, rating, 0);
}

const struct drps_format drps_format_ratings = {
    .name = "ratings",
    .has_names = 1,
    .has_fields = 1,
    .open = ratings_open,
    .close = ratings_close,
    .begin_file = ratings_begin_file,
    .bound = ratings_bound,
    .line = ratings_line,
};
