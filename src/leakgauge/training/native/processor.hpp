// Which instruction sets the processor has and the system saves. (__builtin_cpu_supports asks the compiler's run-time
// library, which not every compiler brings: it then says that there are none.)

#if defined(__x86_64__)

#include <cpuid.h>
#include <cstdint>

namespace processor {

struct Leaf {
    uint32_t a = 0, b = 0, c = 0, d = 0;

    explicit Leaf(uint32_t number) {
        if (!__get_cpuid_count(number, 0, &a, &b, &c, &d)) a = b = c = d = 0;
    }
};

inline bool has(uint32_t bits, int bit) { return bits >> bit & 1; }

// Whether the system saves all of these registers of a process: bits of XCR0.
inline bool saves(uint32_t registers) {
    if (!has(Leaf(1).c, 27)) return false;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & registers) == registers;
}

// Bits from the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, and volume 1, 13.3.
// Asked once, when the library is loaded: under a hypervisor each question takes microseconds.
inline const bool AVX2 = has(Leaf(7).b, 5) && saves(0x6);
inline const bool FMA = has(Leaf(1).c, 12) && saves(0x6);
inline const bool AVX512F = has(Leaf(7).b, 16) && saves(0xe6);

}  // namespace processor

#endif
