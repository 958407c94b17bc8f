/* Counts requests in a log. */
#include <regex.h>
#include <stdio.h>

enum { LINES = 35000 };

int main(void) {
    const char *pattern = "^[0-9]{1,3}\\.[0-9]+ (GET|PUT|POST) /[a-z]+(/[a-z0-9]+)*$";
    char line[64];
    regex_t request;
    int found = 0;
    if (regcomp(&request, pattern, REG_EXTENDED | REG_NOSUB)) return 1;
    for (int n = 0; n < LINES; n++) {
        snprintf(line, sizeof line, "%d.%d %s /page/%d", n % 1200, n, n % 3 ? "GET" : "DELETE", n);
        found += regexec(&request, line, 0, NULL, 0) == 0;
    }
    regfree(&request);
    printf("%d requests\n", found);
    return 0;
}
