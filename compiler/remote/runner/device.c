/* What this device is: its architecture, its CPU, and whether it is emulated. */

#include "runner.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

const char *architecture(void)
{
#if defined __x86_64__
    return "x86_64";
#elif defined __aarch64__
    return "aarch64";
#elif defined __arm__ && defined __ARM_PCS_VFP
    return "armv7l";
#elif defined __riscv && __riscv_xlen == 64
    return "riscv64";
#else
#error "kernels are not compiled for this architecture"
#endif
}

/* The first line of /proc/cpuinfo that lists the features of the CPU. */
const char *cpu_features(void)
{
    static char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8) || !strncmp(line, "isa", 3)) {
            fclose(file);
            return line;
        }
    if (file != NULL) fclose(file);
    return "";
}

/* The length of the vector registers of a RISC-V CPU, which no file says; 0 for others. */
uint32_t vector_bits(void)
{
#ifdef __riscv
    if (getauxval(AT_HWCAP) >> ('v' - 'a') & 1) {
        unsigned long bytes;
        __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
        return (uint32_t)(8 * bytes);
    }
#endif
    return 0;
}

/* Whether QEMU's user mode runs this program. It answers for /proc/self/exe, and Linux for
   /proc/thread-self/exe: that is the emulator. The name of the process is that of the emulator too,
   unless Linux starts it by itself (binfmt_misc). */
bool is_in_qemu(void)
{
    char name[17] = "", told[4096], real[4096];
    prctl(PR_GET_NAME, name);
    ssize_t told_size = readlink("/proc/self/exe", told, sizeof told);
    ssize_t real_size = readlink("/proc/thread-self/exe", real, sizeof real);
    bool differs = told_size > 0 && real_size > 0 &&
                   (told_size != real_size || memcmp(told, real, (size_t)real_size) != 0);
    return differs || strncmp(name, "qemu-", 5) == 0;
}

uint32_t num_cores(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint32_t)CPU_COUNT(&cores) : 1;
}
