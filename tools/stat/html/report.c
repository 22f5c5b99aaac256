#include "tools/stat/html/drps_html_report.h"

#include <string.h>

#include "tools/stat/html/sections.h"
#include "tools/stat/html/style.h"

/* ---- What is shown ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Gives each subject the last part of its path as a name, or where two are alike all of it. */
static void name_subjects(struct subject *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int alike = 0;
        for (size_t k = 0; k < n; k++)
            alike |= k != i && strcmp(last_part(s[i].path), last_part(s[k].path)) == 0;
        s[i].name = alike ? s[i].path : last_part(s[i].path);
        s[i].style = (unsigned)i;
    }
}

static int open_subjects(const struct drps_io *io, const struct html_report *report,
                         struct subject *s, struct drps_err *err)
{
    for (size_t i = 0; i < report->n; i++) {
        int rc = drps_textfile_check(report->file, report->paths[i], NULL, 0, err);
        s[i].log = report->log;
        if (rc == 0) rc = subject_open(io, report->paths[i], &s[i], err);
        if (rc < 0) return rc;
    }
    name_subjects(s, report->n);
    return 0;
}

/* ---- The page ---- */

/* The page may load nothing and run nothing, whatever is in it. */
static void write_head(struct html *h, const struct subject *s, size_t n)
{
    html_raw(h, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'\"/>\n"
                "<meta name=\"generator\" content=\"drps-stat " DRPS_VERSION "\"/>\n<title>");
    for (size_t i = 0; i < n; i++) {
        html_raw(h, i ? ", " : "");
        html_text(h, s[i].name);
    }
    html_raw(h, " - drps</title>\n<style>\n");
    html_raw(h, html_style);
    html_raw(h, "</style></head>\n<body>\n");
}

static int trainings(const struct subject *s, size_t n)
{
    int trained = 0;
    for (size_t i = 0; i < n; i++)
        trained += s[i].training != NULL;
    return trained;
}

static void write_contents(struct html *h, const struct subject *s, size_t n)
{
    if (n < 2) return;
    html_raw(h, "<nav aria-label=\"Contents\"><ul>\n");
    if (trainings(s, n) > 1) html_raw(h, "<li><a href=\"#compare\">Side by side</a></li>\n");
    for (size_t i = 0; i < n; i++) {
        html_print(h, "<li><a href=\"#part%zu\">", i);
        html_text(h, s[i].name);
        html_raw(h, "</a></li>\n");
    }
    html_raw(h, "</ul></nav>\n");
}

static void write_subject(struct html *h, const struct subject *s, size_t i, int first)
{
    html_print(h, "<section aria-labelledby=\"part%zu\"><h2 id=\"part%zu\"%s>", i, i,
               first ? " class=\"first\"" : "");
    html_text(h, s->name);
    html_raw(h, "</h2>\n");
    section_summary(h, s);
    section_plan(h, s);
    section_learning(h, s);
    section_time(h, s);
    section_memory(h, s);
    section_disk(h, s);
    section_ranks(h, s);
    html_raw(h, "</section>\n");
}

static void write_page(struct html *h, const struct subject *s, size_t n)
{
    write_head(h, s, n);
    html_raw(h, "<header><h1>drps: a report</h1></header>\n");
    write_contents(h, s, n);
    html_raw(h, "<main>\n");
    section_comparison(h, s, n);
    for (size_t i = 0; i < n; i++)
        write_subject(h, &s[i], i, i == 0 && trainings(s, n) < 2);
    html_raw(h, "</main></body></html>\n");
}

int html_report_write(const struct drps_io *io, const struct html_report *report,
                      struct drps_err *err)
{
    struct subject s[HTML_REPORT_MOST] = {{0}};
    struct html h;
    int rc = open_subjects(io, report, s, err);
    if (rc == 0) rc = html_begin(&h, io, report->file, report->replace, err);
    if (rc == 0) {
        write_page(&h, s, report->n);
        rc = html_end(&h);
    }
    for (size_t i = 0; i < report->n; i++)
        subject_close(&s[i]);
    return rc;
}
