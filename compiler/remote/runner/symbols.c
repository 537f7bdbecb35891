/* Functions of this system that kernels call, by their names. */

#include "runner.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void (*task_function)(int64_t begin, int64_t end, int64_t number, void *context);

/* Runs a parallel loop on this thread: what `lw_launch` of a pool of threads does on several. */
static void launch_serially(task_function task, int64_t extent, void *context, int64_t threads)
{
    (void)threads;
    task(0, extent, 0, context);
}

#ifdef __arm__
/* Helpers of compilers, in their run-time library. */
void __aeabi_ldivmod(void), __aeabi_uldivmod(void), __aeabi_idivmod(void), __aeabi_uidivmod(void);
void __aeabi_idiv(void), __aeabi_uidiv(void), __aeabi_l2f(void), __aeabi_ul2f(void);
void __aeabi_l2d(void), __aeabi_ul2d(void), __aeabi_f2lz(void), __aeabi_f2ulz(void);
void __aeabi_d2lz(void), __aeabi_d2ulz(void), __aeabi_lmul(void), __aeabi_llsl(void);
void __aeabi_llsr(void), __aeabi_lasr(void);
#endif

struct symbol {
    const char *name;
    void (*address)(void);
};

#define SYMBOL(name) {#name, (void (*)(void))name}
#define BOTH(name) {#name, (void (*)(void))(double (*)(double))name}, SYMBOL(name##f)

static const struct symbol SYMBOLS[] = {
    {"lw_launch_serially", (void (*)(void))launch_serially},
    SYMBOL(memcpy), SYMBOL(memmove), SYMBOL(memset),
    BOTH(acos), BOTH(acosh), BOTH(asin), BOTH(asinh), BOTH(atan), BOTH(atanh), BOTH(cbrt),
    BOTH(ceil), BOTH(cos), BOTH(cosh), BOTH(erf), BOTH(erfc), BOTH(exp), BOTH(exp2), BOTH(expm1),
    BOTH(fabs), BOTH(floor), BOTH(log), BOTH(log10), BOTH(log1p), BOTH(log2), BOTH(nearbyint),
    BOTH(rint), BOTH(round), BOTH(sin), BOTH(sinh), BOTH(sqrt), BOTH(tan), BOTH(tanh), BOTH(trunc),
    SYMBOL(atan2), SYMBOL(atan2f), SYMBOL(fma), SYMBOL(fmaf), SYMBOL(fmax), SYMBOL(fmaxf),
    SYMBOL(fmin), SYMBOL(fminf), SYMBOL(fmod), SYMBOL(fmodf), SYMBOL(hypot), SYMBOL(hypotf),
    SYMBOL(ldexp), SYMBOL(ldexpf), SYMBOL(pow), SYMBOL(powf),
#ifdef __GLIBC__
    {"roundeven", (void (*)(void))roundeven}, {"roundevenf", (void (*)(void))roundevenf},
#endif
    /* for pools of threads */
    SYMBOL(clock_gettime), SYMBOL(pthread_create), SYMBOL(pthread_detach),
    SYMBOL(pthread_setname_np), SYMBOL(pthread_sigmask), SYMBOL(sigfillset), SYMBOL(syscall),
#ifdef __arm__
    SYMBOL(__aeabi_ldivmod), SYMBOL(__aeabi_uldivmod), SYMBOL(__aeabi_idivmod),
    SYMBOL(__aeabi_uidivmod), SYMBOL(__aeabi_idiv), SYMBOL(__aeabi_uidiv), SYMBOL(__aeabi_l2f),
    SYMBOL(__aeabi_ul2f), SYMBOL(__aeabi_l2d), SYMBOL(__aeabi_ul2d), SYMBOL(__aeabi_f2lz),
    SYMBOL(__aeabi_f2ulz), SYMBOL(__aeabi_d2lz), SYMBOL(__aeabi_d2ulz), SYMBOL(__aeabi_lmul),
    SYMBOL(__aeabi_llsl), SYMBOL(__aeabi_llsr), SYMBOL(__aeabi_lasr),
#endif
};

/* Reply with the address of each function, 0 for one that is not here. A zero ends each name. */
enum error resolve(struct input *input, struct reply *reply)
{
    while (input->left) {
        const uint8_t *end = memchr(input->at, 0, input->left);
        if (end == NULL) return MALFORMED;
        uint64_t address = 0;
        for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++)
            if (strcmp(SYMBOLS[i].name, (const char *)input->at) == 0)
                address = (uint64_t)(uintptr_t)SYMBOLS[i].address;
        if (reply->body_bytes + 8 > MAX_BODY_BYTES) return OUT_OF_RANGE;
        add_u64(reply, address);
        input->left -= (size_t)(end + 1 - input->at);
        input->at = end + 1;
    }
    return NO_ERROR;
}
