/*
 * Finds the format of a file from its first lines. Each test is narrow, so that a wrong guess is
 * unlikely and an unusual file is an error that asks for the format's name.
 */
#include <strings.h>

#include "index/reader/columns.h"

enum { LINES = 8, TOKENS = 6, COLUMNS = 64 };

struct head_line {
    const char *p, *end;
};

/*
 * Find the first lines with text, comments left out. A cut last line counts only when there is no
 * other.
 */
static size_t first_lines(const char *head, size_t n, int whole, struct head_line *lines)
{
    const char *p = head, *stop = head + n;
    size_t count = 0;

    while (p < stop && count < LINES) {
        const char *feed = memchr(p, '\n', (size_t)(stop - p));
        if (!feed && !whole && count > 0) break;
        const char *end = feed ? feed : stop;
        struct head_line line = {p, end > p && end[-1] == '\r' ? end - 1 : end};
        while (line.p < line.end && drps_is_blank(*line.p))
            line.p++;
        if (line.p < line.end && *line.p != '#') lines[count++] = line;
        p = end + 1;
    }
    return count;
}

static size_t count_byte(const struct head_line *l, char c)
{
    return drps_text_count(l->p, (size_t)(l->end - l->p), c);
}

/*
 * Returns the end of the number at p, or NULL when there is none that a separator or the line's end
 * follows.
 */
static const char *number_token(const char *p, const char *end)
{
    float v;
    const char *q = p < end ? drps_number_float(p, &v) : NULL;
    return q && (q >= end || drps_is_blank(*q)) ? q : NULL;
}

/* Returns the end of "id:value" (`colons` is 1) or "field:id:value" (2), or NULL. */
static const char *feature_token(const char *p, const char *end, int colons)
{
    for (int i = 0; i < colons; i++) {
        uint64_t id;
        const char *q = drps_number_u64(p, &id);
        if (!q || q == p || *q != ':') return NULL;
        p = q + 1;
    }
    return number_token(p, end);
}

/* Returns the end of a name that may be a label, or NULL: it has no colon. */
static const char *name_token(const char *p, const char *end)
{
    while (p < end && !drps_is_blank(*p))
        if (*p++ == ':') return NULL;
    return p;
}

/* Count features behind a label, at most TOKENS; -1 when the line is of another kind. */
static int count_features(const struct head_line *l, int colons, int named)
{
    const char *p = named ? name_token(l->p, l->end) : number_token(l->p, l->end);
    int found = 0;

    if (!p) return -1;
    while (found < TOKENS) {
        while (p < l->end && drps_is_blank(*p))
            p++;
        if (p >= l->end || *p == '#') break;
        const char *q = NULL;
        if (l->end - p > 4 && memcmp(p, "qid:", 4) == 0)
            q = number_token(p + 4, l->end);
        else if ((q = feature_token(p, l->end, colons)) != NULL)
            found++;
        if (!q) return -1;
        p = q;
    }
    return found;
}

/*
 * Returns 1 if most lines are labels with features of this kind, and at least one has a feature.
 * Not all need to be: a bad line among the first should be told as what it is.
 */
static int most_features(const struct head_line *lines, size_t n, int colons, int need_features,
                         int named)
{
    int found = 0;
    size_t fit = 0;
    for (size_t i = 0; i < n; i++) {
        int features = count_features(&lines[i], colons, named);
        fit += features >= 0;
        found |= features > 0;
    }
    return 2 * fit > n && (found || !need_features);
}

/* Returns 1 if at least half of the lines begin with a label and a feature of this kind, whatever
 * follows. */
static int half_begin(const struct head_line *lines, size_t n, int colons, int named)
{
    size_t fit = 0;
    for (size_t i = 0; i < n; i++) {
        const char *p =
            named ? name_token(lines[i].p, lines[i].end) : number_token(lines[i].p, lines[i].end);
        while (p && p < lines[i].end && drps_is_blank(*p))
            p++;
        fit += p && p < lines[i].end && feature_token(p, lines[i].end, colons) != NULL;
    }
    return n > 0 && 2 * fit >= n;
}

static int is_integer(const char *p, const char *end)
{
    uint64_t v;
    const char *q = drps_number_u64(p, &v);
    while (q && q < end && drps_is_blank(*q))
        q++;
    return q && q != p && q >= end;
}

static int looks_docword(const struct head_line *lines, size_t n)
{
    if (n < 3) return 0;
    for (size_t i = 0; i < 3; i++)
        if (!is_integer(lines[i].p, lines[i].end)) return 0;
    if (n == 3) return lines[2].end - lines[2].p == 1 && *lines[2].p == '0'; /* NNZ of no line */
    const char *p = lines[3].p;
    for (int i = 0; i < 3; i++) {
        uint64_t v;
        const char *q = drps_number_u64(p, &v);
        if (!q || q == p || (i < 2 && !drps_is_blank(*q))) return 0;
        for (p = q; drps_is_blank(*p);)
            p++;
    }
    return p >= lines[3].end;
}

/* Cut a line without quotes into columns. Returns their number, COLUMNS at most. */
static size_t cut(const struct head_line *l, char separator, struct head_line *columns)
{
    size_t n = 0;
    const char *p = l->p;

    while (n < COLUMNS) {
        const char *q = memchr(p, separator, (size_t)(l->end - p));
        columns[n++] = (struct head_line){p, q ? q : l->end};
        if (!q) break;
        p = q + 1;
    }
    return n;
}

static int is_number_column(const struct head_line *c)
{
    const char *p = c->p;
    while (p < c->end && *p == ' ')
        p++;
    float v;
    const char *q = p < c->end ? drps_number_float(p, &v) : NULL;
    while (q && q < c->end && drps_is_blank(*q))
        q++;
    return q && q == c->end;
}

/* Users, items and times are no decimals: those are numbers of a table. */
static int is_decimal(const struct head_line *c)
{
    return is_number_column(c) && strcspn(c->p, ".eE") < (size_t)(c->end - c->p);
}

/* Returns 1 if the line is user, item and a number. A fourth column must be a number, too. */
static int rating_columns(const struct head_line *l)
{
    struct head_line c[COLUMNS];
    size_t n = 0;

    if (memmem(l->p, (size_t)(l->end - l->p), "::", 2)) {
        const char *p = l->p;
        for (;;) {
            const char *q = memmem(p, (size_t)(l->end - p), "::", 2);
            if (n == 5) return 0;
            c[n++] = (struct head_line){p, q ? q : l->end};
            if (!q) break;
            p = q + 2;
        }
    } else if (count_byte(l, '\t') > 0) {
        n = cut(l, '\t', c);
    } else if (count_byte(l, ',') > 0) {
        n = cut(l, ',', c);
    } else {
        const char *p = l->p;
        while (p < l->end && n < 5) {
            const char *q = p;
            while (q < l->end && !drps_is_blank(*q))
                q++;
            c[n++] = (struct head_line){p, q};
            for (p = q; p < l->end && drps_is_blank(*p);)
                p++;
        }
    }
    return (n == 3 || n == 4) && c[0].p < c[0].end && c[1].p < c[1].end &&
           is_number_column(&c[2]) && !is_decimal(&c[0]) && !is_decimal(&c[1]) &&
           (n == 3 || (is_number_column(&c[3]) && !is_decimal(&c[3])));
}

static int looks_ratings(const struct head_line *lines, size_t n)
{
    size_t fit = 0;
    for (size_t i = 0; i < n; i++)
        fit += (size_t)rating_columns(&lines[i]);
    if (rating_columns(&lines[0])) return 2 * fit > n;
    /* A header must speak of users: other three-column files with a header are csv. */
    return 2 * fit > n - 1 && lines[0].end - lines[0].p >= 4 &&
           strncasecmp(lines[0].p, "user", 4) == 0;
}

static int looks_criteo(const struct head_line *l)
{
    float v;
    const char *q = drps_number_float(l->p, &v);
    return q && *q == '\t' && count_byte(l, '\t') == 39;
}

static int equals(const struct head_line *c, const char *name)
{
    const char *p = c->p, *end = c->end;
    if (end - p >= 2 && *p == '"' && end[-1] == '"') {
        p++;
        end--;
    }
    return strlen(name) == (size_t)(end - p) && strncasecmp(p, name, (size_t)(end - p)) == 0;
}

/* Returns 1 if the line is a header with a label column. */
static int looks_csv(const struct head_line *l, const char *label)
{
    static const char *const labels[] = {"label", "target", "y", "click"};
    static const char separators[] = ",\t;";
    struct head_line c[COLUMNS];

    for (const char *s = separators; *s; s++) {
        size_t n = cut(l, *s, c);
        if (n < 2) continue;
        for (size_t i = 0; i < n; i++) {
            if (label && equals(&c[i], label)) return 1;
            for (size_t k = 0; !label && k < sizeof(labels) / sizeof(labels[0]); k++)
                if (equals(&c[i], labels[k])) return 1;
        }
    }
    return 0;
}

/* Count columns by this separator, which does not count within quotes. */
static size_t count_columns(const struct head_line *l, char separator)
{
    size_t n = 1;
    int quoted = 0;
    for (const char *p = l->p; p < l->end; p++) {
        quoted ^= *p == '"';
        n += !quoted && *p == separator;
    }
    return n;
}

/*
 * Returns 1 if names stand above lines of as many columns: that is csv, though nobody knows its
 * label. Asking for the label is of more use than asking for the format.
 */
static int looks_table(const struct head_line *lines, size_t n)
{
    static const char separators[] = ",\t;";
    struct head_line c[COLUMNS];

    for (const char *s = separators; *s; s++) {
        const size_t columns = count_columns(&lines[0], *s);
        size_t fit = 0, names = 0;
        if (columns < 2) continue;
        for (size_t i = 1; i < n; i++)
            fit += count_columns(&lines[i], *s) == columns;
        const size_t shown = cut(&lines[0], *s, c);
        for (size_t i = 0; i < shown; i++)
            names += c[i].p < c[i].end && !is_number_column(&c[i]);
        if (2 * fit > n - 1 && names == shown) return 1;
    }
    return 0;
}

/* ---- Tables of numbers, Vowpal Wabbit's text, JSON lines ---- */

/* Count the line's columns; 0: some are no number and not missing, or all are missing. Runs of
 * blanks are one separator. */
static size_t number_columns(const struct head_line *l, char separator)
{
    size_t n = 0, numbers = 0;
    for (const char *p = l->p; p <= l->end; n++) {
        struct head_line c = {p, p};
        while (c.end < l->end && *c.end != separator)
            c.end++;
        const int number = is_number_column(&c);
        if (!number && !drps_columns_missing(c.p, c.end)) return 0;
        numbers += (size_t)number;
        p = c.end + 1;
        while (separator == ' ' && p < l->end && *p == ' ')
            p++;
        if (separator == ' ' && p >= l->end) p = l->end + 1;
    }
    return numbers ? n : 0;
}

/* Returns 1 if the first line is all numbers, and most lines have as many. */
static int looks_numbers(const struct head_line *lines, size_t n)
{
    static const char separators[] = ",\t; ";
    for (const char *s = separators; *s; s++) {
        const size_t columns = number_columns(&lines[0], *s);
        size_t fit = 0;
        for (size_t i = 0; i < n; i++)
            fit += columns == number_columns(&lines[i], *s);
        if (columns > 1 && 2 * fit > n) return 1;
    }
    return 0;
}

/* Returns 1 if the text before the first bar is nothing, or begins with a number. */
static int vw_head(const struct head_line *l, const char *bar)
{
    float v;
    const char *q = l->p;
    if (q == bar) return 1;
    q = drps_number_float(q, &v);
    return q && q < bar && drps_is_blank(*q);
}

/* Returns 1 if most lines have a label, and a bar before features. Tables whose columns are
 * separated by bars within blanks have neither names of spaces nor values. */
static int looks_vw(const struct head_line *lines, size_t n)
{
    size_t fit = 0, sure = 0;
    for (size_t i = 0; i < n; i++) {
        const char *bar = memchr(lines[i].p, '|', (size_t)(lines[i].end - lines[i].p));
        if (!bar || !vw_head(&lines[i], bar)) continue;
        const struct head_line rest = {bar + 1, lines[i].end};
        fit++;
        sure += rest.p < rest.end && (!drps_is_blank(*rest.p) || count_byte(&rest, ':') > 0 ||
                                      count_byte(&rest, '|') == 0);
    }
    return 2 * fit > n && sure > 0;
}

static int looks_jsonl(const struct head_line *lines, size_t n)
{
    size_t fit = 0;
    for (size_t i = 0; i < n; i++) {
        const char *p = lines[i].p + 1;
        while (p < lines[i].end && drps_is_blank(*p))
            p++;
        fit += *lines[i].p == '{' && p < lines[i].end && (*p == '"' || *p == '}');
    }
    return 2 * fit > n;
}

int drps_format_looks_headless(const char *head, size_t n, int whole)
{
    static const char separators[] = ",\t;";
    struct head_line lines[LINES], c[COLUMNS];
    const size_t count = first_lines(head, n, whole, lines);

    for (const char *s = separators; count && *s; s++) {
        const size_t columns = count_columns(&lines[0], *s), shown = cut(&lines[0], *s, c);
        size_t fit = 0, numbers = 0;
        if (columns < 2) continue;
        for (size_t i = 0; i < count; i++)
            fit += count_columns(&lines[i], *s) == columns;
        for (size_t i = 0; i < shown; i++)
            numbers += (size_t)is_number_column(&c[i]);
        if (2 * fit > count && numbers > 0) return 1;
    }
    return 0;
}

/* Columns are spoken of: what could be ratings is a table, if it can be one. */
static const struct drps_format *detect_table(const struct head_line *lines, size_t n,
                                              const char *csv_label)
{
    const int is_csv =
        looks_numbers(lines, n) || looks_csv(&lines[0], csv_label) || looks_table(lines, n);
    return is_csv ? &drps_format_csv : &drps_format_ratings;
}

const struct drps_format *drps_format_detect(const char *head, size_t n, int whole,
                                             const char *csv_label, int of_columns, int named)
{
    struct head_line lines[LINES];
    size_t count = first_lines(head, n, whole, lines);

    if (drps_format_idx.looks(head, n)) return &drps_format_idx;
    if (count == 0) return whole || n == 0 ? &drps_format_libsvm : NULL;
    if (lines[0].end - lines[0].p >= 9 && memcmp(lines[0].p, "id,click,", 9) == 0)
        return &drps_format_avazu;
    if (looks_criteo(&lines[0])) return &drps_format_criteo;
    if (looks_jsonl(lines, count)) return &drps_format_jsonl;
    if (looks_vw(lines, count)) return &drps_format_vw;
    if (looks_docword(lines, count)) return &drps_format_docword;
    if (most_features(lines, count, 1, 1, named)) return &drps_format_libsvm;
    if (most_features(lines, count, 2, 1, named)) return &drps_format_libffm;
    if (looks_ratings(lines, count))
        return of_columns ? detect_table(lines, count, csv_label) : &drps_format_ratings;
    if (looks_numbers(lines, count)) return &drps_format_csv;
    if (looks_csv(&lines[0], csv_label)) return &drps_format_csv;
    if (most_features(lines, count, 1, 0, 0)) return &drps_format_libsvm; /* labels only */
    if (looks_table(lines, count)) return &drps_format_csv;
    return NULL;
}

const struct drps_format *drps_format_likely(const char *head, size_t n, int whole, int named)
{
    struct head_line lines[LINES];
    const size_t count = first_lines(head, n, whole, lines);
    if (half_begin(lines, count, 1, named)) return &drps_format_libsvm;
    return half_begin(lines, count, 2, named) ? &drps_format_libffm : NULL;
}
