#include "checksum/digest.h"

#include "common/berr.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define CHUNK ((size_t)256 << 10)

const char *digest_find(const char *name, size_t len)
{
    static const char *const known[] = {"MD5", "SHA256"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i]) == len && strncasecmp(known[i], name, len) == 0)
            return known[i];
    return NULL;
}

static TRITONSERVER_Error *cannot(const char *what, const char *shown, int number)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "failed to %s %s: %s", what, shown,
                    strerror(number));
}

/* Reads the file to its end. Returns false if reading failed, with errno. */
static bool digest(FILE *f, EVP_MD_CTX *context, unsigned char *chunk)
{
    size_t n;
    while ((n = fread(chunk, 1, CHUNK, f)) > 0)
        if (!EVP_DigestUpdate(context, chunk, n))
            return false;
    return !ferror(f);
}

static void print(const unsigned char *bytes, unsigned count, char ret[DIGEST_TEXT])
{
    for (unsigned i = 0; i < count && 2 * i + 2 < DIGEST_TEXT; i++)
        snprintf(ret + (size_t)2 * i, 3, "%02x", bytes[i]);
}

TRITONSERVER_Error *digest_of_file(const char *algorithm, const char *path, const char *shown,
                                   char ret[DIGEST_TEXT])
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "failed to read %s: not a regular file",
                        shown);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return cannot("open text file for read", shown, errno);
    TRITONSERVER_Error *err = NULL;
    unsigned char *chunk = malloc(CHUNK);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    errno = 0;
    if (!chunk || !context)
        err = berr_no_memory();
    else if (!EVP_DigestInit_ex(context, EVP_get_digestbyname(algorithm), NULL))
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "Unsupported checksum algorithm: %s",
                       algorithm);
    else if (!digest(f, context, chunk) || !EVP_DigestFinal_ex(context, bytes, &count))
        err = cannot("read", shown, errno);
    else
        print(bytes, count, ret);
    EVP_MD_CTX_free(context);
    free(chunk);
    fclose(f);
    return err;
}
