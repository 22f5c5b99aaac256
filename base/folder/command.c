/* Words are quoted as POSIX shells read them: in single quotes, where a quote is '\''. */
#include "base/folder/drps_command.h"

#include <string.h>

#include "base/folder/drps_escape.h"
#include "base/folder/drps_manifest.h"

static const char unknown[] = "\xef\xbf\xbd", more[] = " ...";

/* The text as far as it is made; a word that does not fit is taken back. */
struct text {
    char *out;
    size_t used;
    int full;
};

static void put(struct text *t, const char *bytes, size_t n)
{
    if (t->used + n + sizeof(more) > DRPS_COMMAND_BYTES) t->full = 1;
    if (t->full) return;
    memcpy(t->out + t->used, bytes, n);
    t->used += n;
}

/* 1: the character at s, of n bytes, moves a cursor or the like: C0, DEL, C1. */
static int is_control(const unsigned char *s, size_t n)
{
    return *s < 0x20 || *s == 0x7f || (n == 2 && *s == 0xc2 && s[1] < 0xa0);
}

static int is_plain(const char *word)
{
    for (const char *c = word; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              strchr("_-./:=,+@%^", *c)))
            return 0;
    return *word != '\0';
}

static void put_word(struct text *t, const char *word)
{
    const int quoted = !is_plain(word);
    const unsigned char *s = (const unsigned char *)word;
    if (quoted) put(t, "'", 1);
    for (size_t left = strlen(word), n; left; s += n, left -= n) {
        n = drps_utf8_bytes(s, left);
        if (!n || is_control(s, n)) {
            put(t, unknown, sizeof(unknown) - 1);
            n = n ? n : 1;
        } else if (*s == '\'') {
            put(t, "'\\''", 4);
        } else {
            put(t, (const char *)s, n);
        }
    }
    if (quoted) put(t, "'", 1);
}

char *drps_command_text(const char *program, int argc, char *const *argv,
                        char out[DRPS_COMMAND_BYTES])
{
    struct text t = {.out = out};
    put_word(&t, program);
    for (int i = 1; i < argc && !t.full; i++) {
        const size_t before = t.used;
        put(&t, " ", 1);
        put_word(&t, argv[i]);
        if (!t.full) continue;
        memcpy(out + before, more, sizeof(more) - 1);
        t.used = before + sizeof(more) - 1;
    }
    out[t.used] = '\0';
    return out;
}

void drps_command_put(json_t **j, const char *key, const char *command)
{
    if (command && command[0]) drps_manifest_put(j, key, json_string(command));
}

int drps_command_get(const json_t *j, const char *key, const char *path, const char **out,
                     struct drps_err *err)
{
    const json_t *v = json_object_get(j, key);
    *out = NULL;
    if (!v) return 0;
    const unsigned char *s = (const unsigned char *)json_string_value(v);
    size_t left = json_string_length(v);
    if (!s || left >= DRPS_COMMAND_BYTES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is no text of less than %d bytes",
                            path, key, DRPS_COMMAND_BYTES);
    for (size_t n; left; s += n, left -= n) {
        n = drps_utf8_bytes(s, left);
        if (!n || is_control(s, n))
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" has control characters", path,
                                key);
    }
    *out = json_string_value(v);
    return 0;
}
