/*
 * Fuzz target of the readers: any bytes must give samples that keep the header's promises or an
 * error with a text, and the size of the pieces must not matter.
 *
 * Input: byte 0 chooses the format (a letter of `selectors`, anything else by its value), byte 1
 * the options (bit 0: skip bad lines; bits 1-5: size of the small pieces), the rest is the file.
 * For 'k' (csv with options), 'n' (the same without a header) and 'x' (JSON lines with options) the
 * first line of the rest is csv_kinds, and what follows a blank in it csv_cross.
 * For 'W' csv has the weight in column w, for 'i' clicks in column c and impressions in column i;
 * for 'b' what is in front of the rest's first zero byte is a file of weights beside libsvm.
 * For 'I' the rest's first byte is the size of a file of labels, which follows, and then idx; 'U'
 * is idx without labels. 'P' is that with numbers by place, of images of 2 x 2 pixels; 'C' is csv,
 * whose numbers are so if all columns have numbers. 't' is tokens in sequences of three, 'T' each
 * line by itself.
 *
 * Built with DRPS_FUZZ_MAIN it is a plain program that replays the files and folders named on its
 * command line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/reader/drps_reader.h"
#include "index/reader/drps_parse.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char selectors[] = "alfrcvsdkjwnxWibIUtTPC";
static const char *const formats[] = {"auto",   "libsvm",  "libffm", "ratings", "criteo", "avazu",
                                      "csv",    "docword", "csv",    "jsonl",   "vw",     "csv",
                                      "jsonl",  "csv",     "csv",    "libsvm",  "idx",    "idx",
                                      "tokens", "tokens",  "idx",    "csv"};

/* Files in memory, read in short pieces: the data, and weights or labels beside it. */
struct memory_file {
    struct {
        const uint8_t *data;
        size_t n, at;
    } of[2];
    size_t step;
};

enum { FIRST_FD = 3 };
static const char *const data_path = "input", *const beside_path = "beside";

static int memory_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct memory_file *f = ctx;
    const int which = strcmp(path, beside_path) == 0;
    (void)flags;
    (void)mode;
    f->of[which].at = 0;
    return FIRST_FD + which;
}

static int memory_close(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static ssize_t memory_read(void *ctx, int fd, void *buf, size_t n)
{
    struct memory_file *f = ctx;
    const int which = fd - FIRST_FD;
    if (n > f->of[which].n - f->of[which].at) n = f->of[which].n - f->of[which].at;
    if (n > f->step) n = f->step;
    if (n > 0) memcpy(buf, f->of[which].data + f->of[which].at, n);
    f->of[which].at += n;
    return (ssize_t)n;
}

static int64_t memory_size(void *ctx, int fd)
{
    const struct memory_file *f = ctx;
    return (int64_t)f->of[fd - FIRST_FD].n;
}

static const struct drps_io_ops memory_ops = {
    .open = memory_open, .close = memory_close, .read = memory_read, .size = memory_size};

static void drop_log(void *ctx, enum drps_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static const struct drps_log quiet = {.level = DRPS_LOG_DEBUG, .sink = drop_log};

/* All that a pass over the input has given. */
struct summary {
    int rc;
    uint64_t n, nnz, hash, skipped, weightless, lines;
    struct drps_err err;
};

static void mix(struct summary *sum, uint64_t v)
{
    sum->hash = (sum->hash ^ v) * 0x9e3779b97f4a7c15u;
    sum->hash ^= sum->hash >> 29;
}

static void mix_float(struct summary *sum, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    mix(sum, bits);
}

static void check_name(const struct drps_reader *r, const struct drps_name *name, uint64_t key,
                       uint64_t seed)
{
    size_t n_fields;
    uint64_t want_key;
    uint32_t want_check;

    (void)drps_reader_fields(r, &n_fields);
    CHECK(name->field < n_fields);
    drps_name_hash(name->field, name->text, name->bytes, seed, &want_key, &want_check);
    CHECK(want_key == key && want_check == name->check);
}

static void check_piece(const struct drps_reader *r, const struct drps_samples *s, uint64_t seed,
                        struct summary *sum)
{
    int ones = 1;

    CHECK(s->starts[0] == 0);
    CHECK((s->names != NULL) == drps_reader_has_names(r));
    for (size_t i = 0; i < s->n; i++) {
        CHECK(isfinite(s->labels[i]));
        CHECK(s->starts[i] <= s->starts[i + 1]);
        CHECK(!s->weights || (isfinite(s->weights[i]) && s->weights[i] > 0));
        mix_float(sum, s->labels[i]);
        if (s->weights) mix_float(sum, s->weights[i]);
        mix(sum, s->starts[i + 1] - s->starts[i]);
        for (size_t j = s->starts[i]; j < s->starts[i + 1]; j++) {
            CHECK(isfinite(s->values[j]) && s->values[j] != 0);
            ones &= s->values[j] == 1;
            mix(sum, s->keys[j]);
            if (s->fields) mix(sum, s->fields[j]);
            mix_float(sum, s->values[j]);
            if (s->names) check_name(r, &s->names[j], s->keys[j], seed);
        }
    }
    CHECK(!s->numbers_each || (drps_reader_has_numbers(r) && !s->starts[s->n]));
    for (size_t i = 0; i < s->n * s->numbers_each; i++) {
        CHECK(isfinite(s->numbers[i]) && (s->numbers[i] != 0 || !signbit(s->numbers[i])));
        mix_float(sum, s->numbers[i]);
    }
    CHECK(!s->all_ones == !ones);
    sum->n += s->n;
    sum->nnz += s->starts[s->n];
}

/* piece_bytes 0: as the reader chooses. Of tokens classes get their numbers from the first one on.
 */
static void pass(struct memory_file *f, struct drps_reader_options o, size_t piece_bytes,
                 struct summary *sum)
{
    const struct drps_io io = {.ops = &memory_ops, .ctx = f};
    struct drps_classes *classes = o.sequence ? drps_classes_new() : NULL;
    struct drps_samples s = {0};
    struct drps_reader *r;

    memset(sum, 0, sizeof(*sum));
    o.classes = classes;
    sum->rc = drps_reader_open(&io, &data_path, 1, &o, &r, &sum->err);
    if (sum->rc == 0) {
        if (piece_bytes) r->chunks.piece_bytes = piece_bytes;
        while ((sum->rc = drps_reader_next(r, &s, &sum->err)) > 0)
            check_piece(r, &s, o.hash_seed, sum);
        sum->skipped = drps_reader_skipped(r);
        sum->weightless = drps_reader_weightless(r);
        sum->lines = drps_reader_lines(r);
        drps_reader_close(r);
    } else {
        CHECK(r == NULL);
    }
    CHECK(sum->rc == sum->err.code);
    CHECK((sum->rc == 0) == (sum->err.text[0] == '\0'));
    drps_samples_free(&s);
    drps_classes_free(classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct summary large, small;
    char kinds[200] = "";

    if (size < 2) return 0;
    const char *at = data[0] ? strchr(selectors, data[0]) : NULL;
    size_t which = at ? (size_t)(at - selectors) : data[0] % (sizeof(selectors) - 1);
    struct drps_reader_options o = {.format = formats[which],
                                    .memory_bytes = 1 << 20,
                                    .skip_bad_lines = data[1] & 1,
                                    .hash_seed = data[1],
                                    .log = &quiet};
    size_t piece_bytes = 1 + (data[1] >> 1 & 31);
    data += 2;
    size -= 2;
    if (strchr("knx", selectors[which])) {
        const uint8_t *feed = size ? memchr(data, '\n', size) : NULL;
        size_t n = feed ? (size_t)(feed - data) : 0;
        if (!feed || n >= sizeof(kinds)) return 0;
        memcpy(kinds, data, n);
        o.csv_kinds = kinds;
        if (selectors[which] == 'n') o.csv_header = DRPS_CSV_NO_HEADER;
        char *blank = strchr(kinds, ' ');
        if (blank) *blank = '\0';
        if (blank) o.csv_cross = blank + 1;
        data += n + 1;
        size -= n + 1;
    }
    struct memory_file f = {.step = SIZE_MAX};
    if (selectors[which] == 'W') o.weight = "w";
    if (selectors[which] == 'i') {
        o.clicks = "c";
        o.impressions = "i";
    }
    if (selectors[which] == 'b') {
        const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
        if (!zero) return 0;
        o.weights = &beside_path;
        o.weights_n = 1;
        f.of[1].data = data;
        f.of[1].n = (size_t)(zero - data);
        size -= f.of[1].n + 1;
        data = zero + 1;
    }
    if (selectors[which] == 'I') {
        if (!size || data[0] >= size) return 0;
        o.label_files = &beside_path;
        o.label_files_n = 1;
        f.of[1].data = data + 1;
        f.of[1].n = data[0];
        size -= f.of[1].n + 1;
        data += f.of[1].n + 1;
    }
    o.label_optional = selectors[which] == 'U' || selectors[which] == 'P';
    o.fields = o.one_feature = selectors[which] == 'P' || selectors[which] == 'C';
    if (o.fields) o.numbers = DRPS_READER_AS_FITS;
    if (selectors[which] == 'P') o.image = (struct drps_image_shape){.rows = 2, .columns = 2};
    if (strcmp(o.format, "tokens") == 0) o.sequence = 3;
    o.sequence_lines = selectors[which] == 'T';
    f.of[0].data = data;
    f.of[0].n = size;
    pass(&f, o, 0, &large);
    f.step = piece_bytes + 2;
    pass(&f, o, piece_bytes, &small);
    /*
     * A fault of the compression behind a bad line is met first by whoever reads further ahead; how
     * long a line may be depends on what the pieces before it have left of the memory.
     */
    if (large.rc == DRPS_E_CORRUPT || small.rc == DRPS_E_CORRUPT ||
        large.rc == DRPS_E_MEMORY_BUDGET || small.rc == DRPS_E_MEMORY_BUDGET)
        return 0;
    CHECK(large.rc == small.rc && strcmp(large.err.text, small.err.text) == 0);
    if (large.rc < 0) return 0; /* how many samples came before the error depends on the pieces */
    CHECK(large.n == small.n && large.nnz == small.nnz && large.hash == small.hash);
    CHECK(large.skipped == small.skipped && large.lines == small.lines);
    CHECK(large.weightless == small.weightless);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
