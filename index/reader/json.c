/* Reads JSON in place: strings lose their escapes where they stand, and nothing is copied but the
 * keys of a path. */
#include "index/reader/json.h"

enum { DEEP = 32, PATH_BYTES = 256 };

struct walk {
    struct drps_parse *ps;
    char *p, *end;
    drps_json_take take;
    void *ctx;
    int depth;
    int arrays; /* that the value is in */
    size_t path_bytes;
    char path[PATH_BYTES];
};

static int bad(struct walk *w, const char *what)
{
    return drps_parse_bad(w->ps, w->p < w->end ? w->p : NULL, "JSON: %s", what);
}

static void skip_blanks(struct walk *w)
{
    while (w->p < w->end && (drps_is_blank(*w->p) || *w->p == '\r'))
        w->p++;
}

static int at(const struct walk *w, char c)
{
    return w->p < w->end && *w->p == c;
}

/* ---- Strings ---- */

/* Read four hexadecimal digits. Returns -1 if there are none. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

static char *put_utf8(char *to, uint32_t v)
{
    if (v < 0x80) {
        *to++ = (char)v;
        return to;
    }
    const int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(lead[more] | v >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *to++ = (char)(0x80 | (v >> 6 * i & 0x3f));
    return to;
}

/* Read "XXXX" of "\uXXXX", and a second half where the first asks for it, as UTF-8. Returns what it
 * has written to, or NULL. */
static char *take_unicode(struct walk *w, char *to)
{
    int32_t v = hex4(w->p, w->end);
    if (v < 0) return NULL;
    w->p += 4;
    if (v >= 0xd800 && v < 0xdc00) {
        if (w->end - w->p < 6 || w->p[0] != '\\' || w->p[1] != 'u') return NULL;
        const int32_t low = hex4(w->p + 2, w->end);
        if (low < 0xdc00 || low > 0xdfff) return NULL;
        w->p += 6;
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    } else if (v >= 0xdc00 && v < 0xe000) {
        return NULL;
    }
    return put_utf8(to, (uint32_t)v);
}

/* Take the escape behind the backslash. Returns what it has written to, or NULL. */
static char *take_escape(struct walk *w, char *to)
{
    static const char from[] = "\"\\/bfnrt", become[] = "\"\\/\b\f\n\r\t";
    const char *known = w->p < w->end && *w->p ? strchr(from, *w->p) : NULL;
    if (known) {
        w->p++;
        *to++ = become[known - from];
        return to;
    }
    if (!at(w, 'u')) return NULL;
    w->p++;
    return take_unicode(w, to);
}

/* Take the string whose quote is at w->p: it becomes *text .. *text_end, and a zero follows. */
static int take_string(struct walk *w, char **text, char **text_end)
{
    char *open = w->p, *to = ++w->p;
    *text = to;
    while (w->p < w->end && *w->p != '"') {
        if (*w->p != '\\') {
            *to++ = *w->p++;
            continue;
        }
        w->p++;
        to = take_escape(w, to);
        if (!to) return bad(w, "no such escape");
    }
    if (w->p >= w->end) {
        w->p = open;
        return bad(w, "the string is not closed on this line");
    }
    w->p++;
    *text_end = to;
    *to = '\0';
    return 0;
}

/* ---- Values ---- */

static int take_value(struct walk *w);

static int take_leaf(struct walk *w, enum drps_json_type type, char *p, char *end)
{
    const struct drps_json_leaf leaf = {.path = w->path,
                                        .path_bytes = w->path_bytes,
                                        .type = type,
                                        .p = p,
                                        .end = end,
                                        .in_array = w->arrays > 0};
    return w->take(w->ctx, w->ps, &leaf);
}

static int take_word(struct walk *w)
{
    static const struct {
        const char *word;
        enum drps_json_type type;
    } words[] = {
        {"true", DRPS_JSON_BOOLEAN}, {"false", DRPS_JSON_BOOLEAN}, {"null", DRPS_JSON_NULL}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t n = strlen(words[i].word);
        if ((size_t)(w->end - w->p) < n || memcmp(w->p, words[i].word, n) != 0) continue;
        char *p = w->p;
        w->p += n;
        return take_leaf(w, words[i].type, p, w->p);
    }
    return bad(w, "a value is expected");
}

static int take_number(struct walk *w)
{
    float v;
    const char *q = drps_number_float(w->p, &v);
    if (!q || q > w->end) return drps_parse_bad_number(w->ps, w->p, "JSON: a value");
    char *p = w->p;
    w->p += q - w->p;
    return take_leaf(w, DRPS_JSON_NUMBER, p, w->p);
}

/* Append a key to the path. A later file is told of columns by lines: a key may have none. */
static int push_key(struct walk *w, const char *key, const char *key_end)
{
    const size_t n = (size_t)(key_end - key), dot = w->path_bytes > 0;
    if (w->path_bytes + dot + n >= PATH_BYTES)
        return bad(w, "the names of keys that lie in each other have more than 255 bytes");
    for (const char *p = key; p < key_end; p++)
        if ((unsigned char)*p < 0x20) return bad(w, "a key has a control character in it");
    if (dot) w->path[w->path_bytes] = '.';
    memcpy(w->path + w->path_bytes + dot, key, n);
    w->path_bytes += dot + n;
    w->path[w->path_bytes] = '\0';
    return 0;
}

static int take_member(struct walk *w)
{
    char *key, *key_end;
    const size_t outer = w->path_bytes;
    if (!at(w, '"')) return bad(w, "a key in quotes is expected");
    int rc = take_string(w, &key, &key_end);
    if (rc == 0) rc = push_key(w, key, key_end);
    if (rc < 0) return rc;
    skip_blanks(w);
    if (!at(w, ':')) return bad(w, "':' is expected");
    w->p++;
    rc = take_value(w);
    w->path_bytes = outer;
    w->path[outer] = '\0';
    return rc;
}

/* Take what stands between the bracket at w->p and `close`, separated by commas. */
static int take_list(struct walk *w, char close, int (*take_one)(struct walk *w))
{
    int rc = 0;
    w->p++;
    skip_blanks(w);
    if (at(w, close)) {
        w->p++;
        return close == ']' ? take_leaf(w, DRPS_JSON_EMPTY, w->p, w->p) : 0;
    }
    for (;;) {
        skip_blanks(w);
        rc = take_one(w);
        if (rc < 0) return rc;
        skip_blanks(w);
        if (!at(w, ',')) break;
        w->p++;
    }
    if (!at(w, close))
        return bad(w, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
    w->p++;
    return 0;
}

static int take_nested(struct walk *w)
{
    const int array = *w->p == '[';
    if (w->depth == DEEP) return bad(w, "objects and arrays are nested more than 32 deep");
    w->depth++;
    w->arrays += array;
    const int rc = array ? take_list(w, ']', take_value) : take_list(w, '}', take_member);
    w->arrays -= array;
    w->depth--;
    return rc;
}

static int take_value(struct walk *w)
{
    char *text, *text_end;
    skip_blanks(w);
    if (w->p >= w->end) return bad(w, "the line ends before the value");
    if (*w->p == '{' || *w->p == '[') return take_nested(w);
    if (*w->p == '-' || (*w->p >= '0' && *w->p <= '9')) return take_number(w);
    if (*w->p != '"') return take_word(w);
    const int rc = take_string(w, &text, &text_end);
    return rc < 0 ? rc : take_leaf(w, DRPS_JSON_STRING, text, text_end);
}

int drps_json_walk(struct drps_parse *ps, char *p, char *end, drps_json_take take, void *ctx)
{
    struct walk w = {.ps = ps, .p = p, .end = end, .take = take, .ctx = ctx};
    w.path[0] = '\0';
    skip_blanks(&w);
    if (!at(&w, '{')) return bad(&w, "a line is an object: '{' is expected");
    int rc = take_nested(&w);
    if (rc < 0) return rc;
    skip_blanks(&w);
    return w.p < w.end ? bad(&w, "text follows the object") : 0;
}
