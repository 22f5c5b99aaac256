/* Names and numbers as text. */
#include "engine/delta/lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "index/reader/drps_reader.h"

enum { LINE_BYTES = 256, NUMBER_BYTES = 32 };

static int put(struct drps_textfile *f, const char *text, size_t n, struct drps_err *err)
{
    char *at;
    int rc = drps_textfile_room(f, n, &at, err);
    if (rc < 0) return rc;
    memcpy(at, text, n);
    drps_textfile_used(f, n);
    return 0;
}

/* Bytes of a name: no line ends, and no column begins within one. */
static int put_bytes(struct drps_textfile *f, const char *text, size_t n, struct drps_err *err)
{
    static const char digits[] = "0123456789abcdef";
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const unsigned char c = (unsigned char)text[i];
        const char escaped[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        rc = c < ' ' || c == 0x7f || c == '\\' ? put(f, escaped, sizeof(escaped), err)
                                               : put(f, &text[i], 1, err);
    }
    return rc;
}

/* What the field is called in the data: its kind, which columns have behind it, is left out. */
static size_t field_bytes(const struct drps_modeldir_info *info, const char *field)
{
    const char *kind = drps_reader_has_columns(info->format) ? strrchr(field, ':') : NULL;
    return kind ? (size_t)(kind - field) : strlen(field);
}

static int put_name(struct drps_textfile *f, const struct delta_name *name, const char *text,
                    struct drps_err *err)
{
    const struct drps_modeldir_info *info = name->info;
    char number[NUMBER_BYTES];
    if (!info) return put(f, "(intercept)", strlen("(intercept)"), err);
    if (!info->string_names) {
        const int n = snprintf(number, sizeof(number), "%" PRIu64, name->key);
        return put(f, number, (size_t)n, err);
    }
    int rc = 0;
    if (name->field < info->fields_n) {
        const char *field = info->fields[name->field];
        rc = put_bytes(f, field, field_bytes(info, field), err);
        if (rc == 0) rc = put(f, "=", 1, err);
    }
    return rc == 0 ? put_bytes(f, text + name->at, name->bytes, err) : rc;
}

int delta_write_line(struct drps_textfile *f, const struct delta_name *name, const char *text,
                     const float *params, uint32_t dim, struct drps_err *err)
{
    char number[NUMBER_BYTES];
    int rc = put_name(f, name, text, err);
    for (uint32_t i = 0; i < dim && rc == 0; i++) {
        const int n = snprintf(number, sizeof(number), "\t%.9g", (double)params[i]);
        rc = put(f, number, (size_t)n, err);
    }
    return rc == 0 ? put(f, "\n", 1, err) : rc;
}

int delta_write_comment(struct drps_textfile *f, struct drps_err *err, const char *fmt, ...)
{
    char line[LINE_BYTES] = "# ";
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + 2, sizeof(line) - 3, fmt, args);
    va_end(args);
    if (n < 0) n = 0;
    if (n > LINE_BYTES - 4) n = LINE_BYTES - 4; /* cut */
    int rc = put_bytes(f, line, (size_t)n + 2, err);
    return rc == 0 ? put(f, "\n", 1, err) : rc;
}
