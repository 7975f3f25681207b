/* Runs a fuzzer without libFuzzer: calls LLVMFuzzerTestOneInput with every file of the folders on
 * the command line. The tests replay the corpora with it. With a file as argument, it repeats one
 * finding.
 *
 * After --faults, each file is replayed once for each fault point that it reaches (base/fault.h);
 * in each of these runs, another fault point fails. */
#include "base/fault.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int faults;
static long failed; /* number of fault points that failed */

static void run(const uint8_t *data, size_t size)
{
    LLVMFuzzerTestOneInput(data, size);
    for (long n = 1; faults; n++) {
        fault_arm(n);
        LLVMFuzzerTestOneInput(data, size);
        long passed = fault_passed();
        fault_arm(0);
        if (passed < n)
            return;
        failed++;
    }
}

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 0;
    }
    struct stat st;
    size_t size = fstat(fileno(f), &st) == 0 ? (size_t)st.st_size : 0;
    /* A buffer of exactly the input's size, so that a sanitizer reports a read past its end. */
    uint8_t *data = malloc(size ? size : 1);
    int read_all = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (read_all)
        run(data, size);
    else
        fprintf(stderr, "%s: could not be read\n", path);
    free(data);
    return read_all;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return replay_file(folder);
    int replayed = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.')
            continue;
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (!replay_file(path)) {
            closedir(dir);
            return 0;
        }
        replayed++;
    }
    closedir(dir);
    return replayed;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    faults = argc > 1 && strcmp(argv[1], "--faults") == 0;
    for (int i = 1 + faults; i < argc; i++) {
        int inputs = replay_folder(argv[i]);
        if (inputs == 0) {
            fprintf(stderr, "%s: nothing replayed\n", argv[i]);
            return 1;
        }
        replayed += inputs;
    }
    printf("%d inputs replayed, %ld faults\n", replayed, failed);
    return replayed > 0 && (!faults || failed > 0) ? 0 : 1;
}
