#include "support/edited.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "base/drps_io.h"
#include "base/folder/drps_manifest.h"
#include "base/record/drps_recfile.h"

enum { FILES = 48, NAME_BYTES = 64, PATH_BYTES = 512, EDITS = 64, MOST_RECORDS = 4096 };
enum { RECORD_MOST = 1 << 20, MANIFEST_LIMIT = 16 << 20, HEADER_BYTES = 64, KIND_AT = 12 };

#define MUST(ok)                                                                                   \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #ok);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct record {
    uint8_t *data; /* own */
    size_t bytes;
};

/* One file below the folder: a manifest, a record file, or other bytes, which are as one record. */
struct file {
    char name[NAME_BYTES];  /* from the folder on: "rank-1/data.rec" */
    json_t *manifest;       /* own; NULL: records */
    uint32_t kind;          /* 0: other bytes */
    struct record *records; /* own [n] */
    size_t n;
};

struct edited {
    struct file files[FILES];
    size_t n;
    char folders[FILES][NAME_BYTES]; /* below it */
    size_t folders_n;
};

/* ---- Scripts ---- */

uint8_t script_byte(struct script *s)
{
    if (!s->left) return 0;
    s->left--;
    return *s->at++;
}

uint64_t script_number(struct script *s, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)script_byte(s) << (8 * i);
    return v;
}

/* Numbers at which something ends, and beside them. */
static uint64_t nasty(struct script *s)
{
    static const uint64_t ends[] = {
        0,          1,          2,          3,         7,          8,          15,
        16,         17,         64,         255,       256,        1024,       4096,
        32767,      65535,      65536,      65537,     1 << 20,    INT32_MAX,  UINT32_MAX,
        1ull << 31, 1ull << 32, 1ull << 40, INT64_MAX, 1ull << 62, 1ull << 63, UINT64_MAX,
    };
    const uint64_t at = ends[script_byte(s) % (sizeof(ends) / sizeof(*ends))];
    return at + (uint64_t)(int64_t)(int8_t)script_byte(s) % 5;
}

/* ---- Reading ---- */

static void join(char out[PATH_BYTES], const char *dir, const char *name)
{
    const int n = snprintf(out, PATH_BYTES, "%s/%s", dir, name);
    MUST(n > 0 && n < PATH_BYTES);
}

static void read_records(struct file *f, const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recfile *r;
    char *all;
    size_t bytes;
    MUST(drps_io_read_file(drps_io_os(), path, SIZE_MAX - 1, &all, &bytes, &err) == 0);
    MUST(bytes >= HEADER_BYTES);
    f->kind = drps_get_u32((const uint8_t *)all + KIND_AT);
    free(all);
    MUST(drps_recfile_open(drps_io_os(), path, f->kind, &r, &err) == 0);
    f->n = (size_t)drps_recfile_count(r);
    f->records = calloc(f->n + 1, sizeof(*f->records));
    MUST(f->records);
    for (size_t i = 0; i < f->n; i++) {
        f->records[i].bytes = (size_t)drps_recfile_bytes(r, i);
        f->records[i].data = calloc(1, (size_t)drps_recfile_run_bytes(r, i, 1) + 1);
        MUST(f->records[i].data);
        MUST(drps_recfile_read(r, i, 1, f->records[i].data, &err) == 0);
    }
    drps_recfile_close(r);
}

static void read_bytes(struct file *f, const char *path)
{
    f->n = 1;
    f->records = calloc(1, sizeof(*f->records));
    MUST(f->records);
    MUST(drps_io_read_file(drps_io_os(), path, SIZE_MAX - 1, (char **)&f->records->data,
                           &f->records->bytes, NULL) == 0);
}

static void read_manifest(struct file *f, const char *path)
{
    json_error_t at;
    f->manifest = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    MUST(f->manifest);
}

static int ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* In the order of names: a script means the same on every machine. */
static void read_folder(struct edited *e, const char *dir, const char *below, const char *raw)
{
    struct dirent **list;
    const int n = scandir(dir, &list, NULL, by_name);
    MUST(n >= 0);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char path[PATH_BYTES], inner[NAME_BYTES];
        struct stat st;
        join(path, dir, name);
        const int len = snprintf(inner, sizeof(inner), "%s%s", below, name);
        MUST(len > 0 && len < NAME_BYTES - 1 && stat(path, &st) == 0);
        if (S_ISDIR(st.st_mode) && name[0] != '.' && !(raw && strcmp(name, raw) == 0)) {
            MUST(e->folders_n < FILES);
            memcpy(e->folders[e->folders_n++], inner, sizeof(inner));
            inner[len] = '/';
            inner[len + 1] = '\0';
            read_folder(e, path, inner, NULL);
        } else if (S_ISREG(st.st_mode)) {
            struct file *f = &e->files[e->n++];
            MUST(e->n <= FILES);
            memcpy(f->name, inner, sizeof(inner));
            if (ends_in(name, ".json"))
                read_manifest(f, path);
            else if (ends_in(name, ".rec"))
                read_records(f, path);
            else
                read_bytes(f, path);
        }
        free(list[i]);
    }
    free(list);
}

struct edited *edited_read(const char *dir, const char *raw)
{
    struct edited *e = calloc(1, sizeof(*e));
    MUST(e);
    read_folder(e, dir, "", raw);
    return e;
}

static void free_file(struct file *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->records[i].data);
    free(f->records);
    json_decref(f->manifest);
}

void edited_free(struct edited *e)
{
    for (size_t i = 0; e && i < e->n; i++)
        free_file(&e->files[i]);
    free(e);
}

static struct edited *copy_of(const struct edited *e)
{
    struct edited *c = malloc(sizeof(*c));
    MUST(c);
    memcpy(c, e, sizeof(*c));
    for (size_t i = 0; i < c->n; i++) {
        struct file *f = &c->files[i];
        const struct record *from = f->records;
        if (f->manifest) {
            f->manifest = json_deep_copy(f->manifest);
            MUST(f->manifest);
            continue;
        }
        f->records = calloc(f->n + 1, sizeof(*f->records));
        MUST(f->records);
        for (size_t k = 0; k < f->n; k++) {
            f->records[k].bytes = from[k].bytes;
            f->records[k].data = malloc(from[k].bytes + 1);
            MUST(f->records[k].data);
            memcpy(f->records[k].data, from[k].data, from[k].bytes);
        }
    }
    return c;
}

/* ---- Edits of records ---- */

static void resize(struct record *r, size_t bytes)
{
    r->data = realloc(r->data, bytes + 1);
    MUST(r->data);
    if (bytes > r->bytes) memset(r->data + r->bytes, 0, bytes - r->bytes);
    r->bytes = bytes;
}

static void insert(struct record *r, size_t at, size_t n, struct script *s)
{
    const size_t tail = r->bytes - at;
    if (r->bytes + n > RECORD_MOST) return;
    resize(r, r->bytes + n);
    memmove(r->data + at + n, r->data + at, tail);
    for (size_t i = 0; i < n; i++)
        r->data[at + i] = script_byte(s);
}

static void cut(struct record *r, size_t at, size_t n)
{
    if (n > r->bytes - at) n = r->bytes - at;
    memmove(r->data + at, r->data + at + n, r->bytes - at - n);
    resize(r, r->bytes - n);
}

/* Little-endian, as far as there is room. */
static void put(struct record *r, size_t at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes && at + i < r->bytes; i++)
        r->data[at + i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const struct record *r, size_t at, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes && at + i < r->bytes; i++)
        v |= (uint64_t)r->data[at + i] << (8 * i);
    return v;
}

static void drop_record(struct file *f, size_t k)
{
    free(f->records[k].data);
    memmove(f->records + k, f->records + k + 1, (f->n - k - 1) * sizeof(*f->records));
    f->n--;
}

static void double_record(struct file *f, size_t k)
{
    if (f->n >= MOST_RECORDS) return;
    f->records = realloc(f->records, (f->n + 2) * sizeof(*f->records));
    MUST(f->records);
    memmove(f->records + k + 1, f->records + k, (f->n - k) * sizeof(*f->records));
    f->n++;
    f->records[k].data = malloc(f->records[k].bytes + 1);
    MUST(f->records[k].data);
    memcpy(f->records[k].data, f->records[k + 1].data, f->records[k].bytes);
}

static void swap_records(struct file *f, size_t a, size_t b)
{
    const struct record r = f->records[a];
    f->records[a] = f->records[b];
    f->records[b] = r;
}

/* Operands: the file, the record, the place in it, and what the edit takes. */
static void edit_records(struct edited *e, unsigned what, struct script *s)
{
    struct file *f = &e->files[script_byte(s) % e->n];
    for (size_t i = 0; f->manifest && i < e->n; i++) /* the next one that has records */
        f = &e->files[(size_t)(f - e->files + 1) % e->n];
    if (f->manifest || !f->n) return;
    const size_t k = (size_t)script_number(s, 2) % f->n;
    struct record *r = &f->records[k];
    const size_t at = (size_t)script_number(s, 2) % (r->bytes + 1);
    const size_t word = at / 4 * 4;
    switch (what % 12) {
    case 0:
        put(r, at, script_byte(s), 1);
        break;
    case 1:
        put(r, word, nasty(s), 4);
        break;
    case 2:
        put(r, word, nasty(s), 8);
        break;
    case 3:
        put(r, word, get(r, word, 4) + (uint64_t)(int64_t)(int8_t)script_byte(s), 4);
        break;
    case 4:
        put(r, at, script_number(s, 8), 8);
        break;
    case 5:
        insert(r, at, script_byte(s), s);
        break;
    case 6:
        cut(r, at, script_byte(s));
        break;
    case 7:
        resize(r, at);
        break;
    case 8:
        swap_records(f, k, (size_t)script_number(s, 2) % f->n);
        break;
    case 9:
        drop_record(f, k);
        break;
    case 10:
        double_record(f, k);
        break;
    default:
        put(r, at, get(r, at, 1) ^ (1u << script_byte(s) % 8), 1);
        break;
    }
}

/* ---- Edits of manifests ---- */

/* The position of a value: in an object under `key`, or in a list. */
struct value_position {
    json_t *parent; /* borrowed */
    const char *key;
    size_t index;
};

/* Find the *left-th value that is no object or list; those are counted, too, when they are passed.
 */
static int find_value(json_t *j, size_t *left, struct value_position *out)
{
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(j, key, value)
    {
        if (!(*left)--) {
            *out = (struct value_position){j, key, 0};
            return 1;
        }
        if (find_value(value, left, out)) return 1;
    }
    json_array_foreach(j, i, value)
    {
        if (!(*left)--) {
            *out = (struct value_position){j, NULL, i};
            return 1;
        }
        if (find_value(value, left, out)) return 1;
    }
    return 0;
}

static json_t *value_at(const struct value_position *p)
{
    return p->key ? json_object_get(p->parent, p->key) : json_array_get(p->parent, p->index);
}

static void put_value(const struct value_position *p, json_t *value)
{
    MUST(value);
    MUST((p->key ? json_object_set_new(p->parent, p->key, value)
                 : json_array_set_new(p->parent, p->index, value)) == 0);
}

static json_t *nasty_real(struct script *s)
{
    static const double reals[] = {0,    -0.0, 1,      -1,    0.5,   1e-300, 1e300,
                                   1e38, 4e38, 1e-320, -1e38, 65536, 1e19,   -1e300};
    return json_real(reals[script_byte(s) % (sizeof(reals) / sizeof(*reals))]);
}

static json_t *nasty_text(struct script *s)
{
    static const char *const texts[] = {
        "",
        "-",
        "lor",
        "lir",
        "svm",
        "lmf",
        "fm",
        "squared",
        "hinge",
        "grid",
        "given",
        "squared-hinge",
        "logistic",
        "csv",
        "ratings",
        "libsvm",
        "rocksdb",
        "leveldb",
        "file",
        "resident",
        "bias",
        "w",
        "wv",
        "user",
        "item",
        "../../names",
        "names.rec",
        "/",
        "shuffled",
        "%s%n",
        "0",
        "rows",
        "ffffffffffffffff",
        "\x1b[31m\n",
        "a text that is as long as no text of this file may be, since it was never meant to be so"};
    return json_string(texts[script_byte(s) % (sizeof(texts) / sizeof(*texts))]);
}

/* The value becomes another one, of its kind or not. */
static void edit_value(const struct value_position *p, unsigned what, struct script *s)
{
    const json_t *old = value_at(p);
    switch (what % 10) {
    case 0:
    case 1:
        put_value(p, json_integer((json_int_t)nasty(s)));
        break;
    case 2:
    case 3:
        put_value(p, json_integer((json_int_t)((uint64_t)json_integer_value(old) +
                                               (uint64_t)(int64_t)(int8_t)script_byte(s))));
        break;
    case 4:
        put_value(p, json_integer((json_int_t)script_number(s, 8)));
        break;
    case 5:
        put_value(p, nasty_real(s));
        break;
    case 6:
        put_value(p, nasty_text(s));
        break;
    case 7:
        put_value(p, script_byte(s) & 1 ? json_boolean(!json_is_true(old)) : json_null());
        break;
    case 8:
        put_value(p, script_byte(s) & 1 ? json_object() : json_array());
        break;
    default:
        if (p->key)
            MUST(json_object_del(p->parent, p->key) == 0);
        else
            MUST(json_array_remove(p->parent, p->index) == 0);
    }
}

struct manifest_edit {
    struct file *file;
    unsigned what;
    size_t value;
    struct script rest; /* its operands */
};

/* Operands that an edit of a value has: all have as many. */
enum { OPERAND_BYTES = 8 };

static struct manifest_edit next_manifest_edit(struct edited *e, unsigned what, struct script *s)
{
    struct manifest_edit m = {.file = &e->files[script_byte(s) % e->n], .what = what};
    for (size_t i = 0; !m.file->manifest && i < e->n; i++)
        m.file = &e->files[(size_t)(m.file - e->files + 1) % e->n];
    m.value = (size_t)script_number(s, 2);
    m.rest = (struct script){s->at, s->left < OPERAND_BYTES ? s->left : OPERAND_BYTES};
    for (int i = 0; i < OPERAND_BYTES; i++)
        (void)script_byte(s);
    return m;
}

static size_t values_of(json_t *j)
{
    struct value_position p;
    size_t left = SIZE_MAX;
    (void)find_value(j, &left, &p);
    return SIZE_MAX - left;
}

static void apply(struct manifest_edit *m)
{
    struct value_position p;
    const size_t n = m->file->manifest ? values_of(m->file->manifest) : 0;
    size_t left = n ? m->value % n : 0;
    if (n && find_value(m->file->manifest, &left, &p)) edit_value(&p, m->what, &m->rest);
}

/* ---- Checksums, and writing ---- */

/* A window's record has a checksum of its head, its nexts and its prevs. */
static void sign_window(struct record *r)
{
    enum { NEXTS_AT = 48, PREVS_AT = 56, SUM_AT = 64, LISTS_AT = 72 };
    if (r->bytes < LISTS_AT) return;
    const uint64_t room = r->bytes - LISTS_AT;
    const uint64_t nexts = drps_get_u64(r->data + NEXTS_AT),
                   prevs = drps_get_u64(r->data + PREVS_AT);
    if (nexts > room || prevs > room - nexts) return;
    const struct drps_piece pieces[2] = {{r->data, SUM_AT},
                                         {r->data + LISTS_AT, (size_t)(nexts + prevs)}};
    drps_put_u64(r->data + SUM_AT, drps_checksum_pieces(pieces, 2));
}

static void write_records(const struct file *f, const char *path)
{
    struct drps_recwriter *w;
    if (!f->kind) {
        size_t n = 0;
        if (f->n) n = f->records->bytes;
        MUST(drps_io_write_file(drps_io_os(), path, n ? f->records->data : NULL, n, NULL) == 0);
        return;
    }
    MUST(drps_recwriter_open(drps_io_os(), path, f->kind, &w, NULL) == 0);
    for (size_t i = 0; i < f->n; i++) {
        if (ends_in(f->name, "windows.rec")) sign_window(&f->records[i]);
        const struct drps_piece piece = {f->records[i].data, f->records[i].bytes};
        MUST(drps_recwriter_add(w, &piece, 1, NULL) == 0);
    }
    MUST(drps_recwriter_finish(w, NULL) == 0);
    drps_recwriter_close(w);
}

/* What the manifest of a plan says of a file: a chain of the checksums of each MiB. That of a model
 * has the checksum of the whole. */
static void measure(const char *path, uint64_t *bytes_out, uint64_t *chain_out, uint64_t *whole_out)
{
    enum { CHUNK_BYTES = 1 << 20 };
    uint64_t chain[2] = {0, 0};
    char *data;
    size_t n;
    MUST(drps_io_read_file(drps_io_os(), path, SIZE_MAX - 1, &data, &n, NULL) == 0);
    for (size_t at = 0; at < n; at += CHUNK_BYTES) {
        chain[1] = drps_checksum(data + at, n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES);
        chain[0] = drps_checksum(chain, sizeof(chain));
    }
    *bytes_out = n;
    *chain_out = chain[0];
    *whole_out = drps_checksum(data, n);
    free(data);
}

static void sign_entry(json_t *entry, uint64_t bytes, uint64_t sum)
{
    if (!json_is_object(entry)) return;
    MUST(json_object_set_new(entry, "bytes", json_integer((json_int_t)bytes)) == 0);
    MUST(json_object_set_new(entry, "checksum", drps_manifest_hex(sum)) == 0);
}

/* The file was written as `path`: its folder's manifest says so. */
static void sign_file(const struct edited *e, const struct file *f, const char *path)
{
    const char *slash = strrchr(f->name, '/');
    const size_t folder = slash ? (size_t)(slash - f->name) + 1 : 0;
    uint64_t bytes, chain, whole;
    measure(path, &bytes, &chain, &whole);
    for (size_t i = 0; i < e->n; i++) {
        const struct file *m = &e->files[i];
        json_t *entry;
        size_t k;
        if (!m->manifest || strncmp(m->name, f->name, folder) != 0 || strchr(m->name + folder, '/'))
            continue;
        json_t *list = json_object_get(m->manifest, "files");
        sign_entry(json_object_get(list, f->name + folder), bytes, whole);
        json_array_foreach(list, k, entry)
        {
            const char *name = json_string_value(json_object_get(entry, "name"));
            if (name && strcmp(name, f->name + folder) == 0) sign_entry(entry, bytes, chain);
        }
    }
}

static void write_all(const struct edited *e, const char *dir, int manifests)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct file *f = &e->files[i];
        char path[PATH_BYTES];
        join(path, dir, f->name);
        if (!manifests && !f->manifest) {
            write_records(f, path);
            sign_file(e, f, path);
        } else if (manifests && f->manifest) {
            (void)json_object_del(f->manifest, "checksum"); /* it may be gone */
            MUST(drps_manifest_write(drps_io_os(), path, f->manifest, NULL) == 0);
        }
    }
}

void edited_write(const struct edited *e, struct script *s, const char *dir)
{
    struct manifest_edit edits[EDITS];
    size_t n = 0;
    struct edited *c = copy_of(e);
    MUST(mkdir(dir, 0777) == 0);
    for (size_t i = 0; i < c->folders_n; i++) {
        char path[PATH_BYTES];
        join(path, dir, c->folders[i]);
        MUST(mkdir(path, 0777) == 0);
    }
    for (unsigned i = 0; s->left && i < EDITS; i++) {
        const unsigned what = script_byte(s);
        if (what & 1)
            edit_records(c, what >> 1, s);
        else
            edits[n++] = next_manifest_edit(c, what >> 1, s);
    }
    write_all(c, dir, 0);
    for (size_t i = 0; i < n; i++)
        apply(&edits[i]);
    write_all(c, dir, 1);
    edited_free(c);
}

void edited_remove(const char *dir)
{
    MUST(drps_io_remove_tree(drps_io_os(), dir, NULL) == 0);
}
