/* Values of a manifest, as text: each in one of a few buffers, taken in turn. */
#include "tools/drps_json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "tools/drps_cli.h"

enum { TEXTS = 24 };

char *text_room(void)
{
    static char texts[TEXTS][TEXT_BYTES];
    static unsigned at;
    at = (at + 1) % TEXTS;
    return texts[at];
}

/* What is no number any more once it was computed with is not known. */
static const char *finite_text(double v, const char *format)
{
    if (!isfinite(v)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, format, v);
    return room;
}

const char *share_text(double part, double whole)
{
    return whole > 0 ? finite_text(100 * part / whole, "%.1f %%") : "-";
}

const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "-";
}

const char *number_of(const json_t *j, const char *key, const char *format)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? finite_text(json_number_value(v), format) : "-";
}

const char *count_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%lld", (long long)json_integer_value(v));
    return room;
}

const char *counted_of(const json_t *j, const char *key, const char *one)
{
    const uint64_t n = (uint64_t)json_integer_value(json_object_get(j, key));
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%s %s%s", count_of(j, key), one, drps_cli_plural(n, one));
    return room;
}

const char *size_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return "-";
    return drps_size_format((uint64_t)json_integer_value(v), text_room(), TEXT_BYTES);
}

const char *forecast_size_of(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key)) ? size_of(j, key) : "-";
}

const char *size_text(double bytes)
{
    if (!(bytes >= 0 && bytes < 0x1p64)) return "-";
    return drps_size_format((uint64_t)bytes, text_room(), TEXT_BYTES);
}

const char *rows_text(uint64_t n, uint64_t m, uint64_t row_bytes)
{
    return size_text((double)drps_sum(n, m) * (double)row_bytes);
}

const char *share_of(const json_t *j, const char *part, const char *whole)
{
    double p = json_number_value(json_object_get(j, part));
    double w = json_number_value(json_object_get(j, whole));
    return share_text(p, w);
}

const char *percent_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? share_text(json_number_value(v), 1) : "-";
}

const char *micros_of(const json_t *j, const char *key, const char *older)
{
    const json_t *v = json_object_get(j, key);
    if (!v) return number_of(j, older, "%.0f");
    return json_is_number(v) ? finite_text(1e6 * json_number_value(v), "%.0f") : "-";
}

const char *rate_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? finite_text(json_number_value(v) / 1e6, "%.1f") : "-";
}

uint64_t number_at(const json_t *j, const char *key)
{
    const json_int_t v = json_integer_value(json_object_get(j, key));
    return v > 0 ? (uint64_t)v : 0;
}
