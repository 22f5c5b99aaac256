#include "tools/stat/html/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PRINT_BYTES = 256 };

int html_begin(struct html *h, const struct drps_io *io, const char *path, int replace,
               struct drps_err *err)
{
    *h = (struct html){.err = err};
    h->rc = drps_textfile_open(&h->file, io, path, replace, err);
    if (h->rc < 0) drps_textfile_close(&h->file);
    return h->rc;
}

int html_end(struct html *h)
{
    if (h->rc == 0) h->rc = drps_textfile_commit(&h->file, h->err);
    drps_textfile_close(&h->file);
    return h->rc;
}

void html_raw(struct html *h, const char *markup)
{
    if (h->rc == 0) h->rc = drps_textfile_put(&h->file, markup, strlen(markup), h->err);
}

void html_text(struct html *h, const char *text)
{
    if (!text) text = "-";
    if (h->rc == 0)
        h->rc = drps_textfile_put_name(&h->file, DRPS_NAME_IN_HTML, text, strlen(text), h->err);
}

void html_print(struct html *h, const char *format, ...)
{
    char markup[PRINT_BYTES];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(markup, sizeof(markup), format, ap);
    va_end(ap);
    html_raw(h, markup);
}

void html_element(struct html *h, const char *tag, const char *text)
{
    html_print(h, "<%s>", tag);
    html_text(h, text);
    html_print(h, "</%s>\n", tag);
}
