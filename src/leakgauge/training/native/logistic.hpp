// The inner loops of logistic.cpp, compiled once for each instruction set: it includes this file in a namespace of its
// own each time. Plain loops over arrays, so that nothing of the standard library is compiled for the newer processor
// alone. Every sum runs over its terms in one order and nothing is fused: all instruction sets agree to the last bit.

typedef double D4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float F8 __attribute__((vector_size(32), aligned(4), may_alias));

INLINE double total(D4 x) { return (x[0] + x[1]) + (x[2] + x[3]); }
INLINE float total(F8 x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

// The sum of a b over n numbers, a whole number of LANES.
double dot(const double* a, const double* b, int64_t n) {
    D4 sum = {};
    for (int64_t i = 0; i < n; i += LANES)
        sum += *reinterpret_cast<const D4*>(a + i) * *reinterpret_cast<const D4*>(b + i);
    return total(sum);
}

// e^x for -708 <= x <= 0, to 2 units in the last place.
INLINE double exp_of(double x) {
    const double shifted = x * 1.4426950408889634 + 6755399441055744.0;  // its low bits are the nearest integer
    const double k = shifted - 6755399441055744.0;
    const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;  // ln 2 in two parts
    double q = 1.0 / 6227020800.0;
    q = q * r + 1.0 / 479001600.0;
    q = q * r + 1.0 / 39916800.0;
    q = q * r + 1.0 / 3628800.0;
    q = q * r + 1.0 / 362880.0;
    q = q * r + 1.0 / 40320.0;
    q = q * r + 1.0 / 5040.0;
    q = q * r + 1.0 / 720.0;
    q = q * r + 1.0 / 120.0;
    q = q * r + 1.0 / 24.0;
    q = q * r + 1.0 / 6.0;
    q = q * r + 0.5;
    int64_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    bits = static_cast<int64_t>(static_cast<uint64_t>(bits + 1023) << 52);
    double power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return power + power * (r + r * r * q);
}

// z = X w for the rows of a model; `table` is room for a number for each column.
void scores(const Problem& problem, const Rows& rows, const double* w, double* table, double* z) {
    double base = 0.0;
    for (int64_t j = 0; j < problem.d; ++j) base += problem.shift[j] * w[j];
    for (int64_t j = 0; j < problem.d; ++j) table[j] = w[j];
    for (int64_t j = 0; j < problem.d; ++j)
        if (problem.instead[j] >= 0) table[j] -= w[problem.instead[j]];
    const uint16_t* column = rows.columns;
    double* to = z;
    for (int64_t g = 0; g < rows.n_groups; ++g)
        for (int64_t i = 0; i < rows.counts[g]; ++i) {
            double sum = base;
            for (int64_t k = 0; k < rows.lengths[g]; ++k) sum += table[*column++];
            *to++ = sum;
        }
    for (int64_t k = 0; k < rows.n_values; ++k) z[rows.value_rows[k]] += rows.values[k] * w[rows.value_columns[k]];
}

// sums = X' factor
void sums(const Problem& problem, const Rows& rows, const double* factor, double* table, double* sums) {
    for (int64_t j = 0; j < problem.d; ++j) table[j] = 0.0;
    const uint16_t* column = rows.columns;
    const double* from = factor;
    double all = 0.0;
    for (int64_t g = 0; g < rows.n_groups; ++g)
        for (int64_t i = 0; i < rows.counts[g]; ++i) {
            const double f = *from++;
            all += f;
            for (int64_t k = 0; k < rows.lengths[g]; ++k) table[*column++] += f;
        }
    for (int64_t j = 0; j < problem.d; ++j) sums[j] = problem.shift[j] * all + table[j];
    for (int64_t j = 0; j < problem.d; ++j)
        if (problem.instead[j] >= 0) sums[problem.instead[j]] -= table[j];
    for (int64_t k = 0; k < rows.n_values; ++k)
        sums[rows.value_columns[k]] += rows.values[k] * factor[rows.value_rows[k]];
}

// Goes to from + length along, n scores: what each record pulls there and how much it bends, and in all along the way.
void move(const Rows& rows, const double* __restrict from, double length, const double* __restrict along, int64_t n,
          Point& to) {
    const double *const __restrict sign = rows.sign, *const __restrict cost = rows.cost;
    double *const __restrict scores = to.z, *const __restrict pull = to.pull, *const __restrict bend = to.bend;
    for (int64_t i = 0; i < n; ++i) {
        const double z = from[i] + length * along[i], margin = sign[i] * z, size = __builtin_fabs(margin);
        const double e = exp_of(size < 700.0 ? -size : -700.0), inverse = 1.0 / (1.0 + e);
        const double miss = margin > 0.0 ? e * inverse : inverse;
        scores[i] = z;
        pull[i] = -sign[i] * cost[i] * miss;
        bend[i] = cost[i] * e * inverse * inverse;
    }
    D4 slope = {}, curve = {};
    for (int64_t i = 0; i < n; i += LANES) {
        const D4 step = *reinterpret_cast<const D4*>(along + i);
        slope += *reinterpret_cast<const D4*>(to.pull + i) * step;
        curve += *reinterpret_cast<const D4*>(to.bend + i) * step * step;
    }
    to.slope = total(slope);
    to.curve = total(curve);
}

// What the Hessian's inverse makes of a gradient, about; `room` for twice the width of the basis.
void precondition(const Problem& problem, const double* gradient, float* room, double* to) {
    const int64_t d = problem.d, width = problem.width;
    float *x = room, *result = room + width;
    double largest = 0.0;  // keeps single precision in its range
    for (int64_t j = 0; j < d; ++j)
        if (__builtin_fabs(gradient[j]) > largest) largest = __builtin_fabs(gradient[j]);
    const double unit = largest > 0.0 ? 1.0 / largest : 0.0;
    for (int64_t j = 0; j < d; ++j) x[j] = result[j] = static_cast<float>(gradient[j] * unit) * problem.scale[j];
    for (int64_t r = 0; r < problem.rank; r += 4) {
        const float *a = problem.basis + r * width, *b = a + width, *c = b + width, *e = c + width;
        F8 sum[4] = {};
        for (int64_t j = 0; j < width; j += 8) {
            const F8 part = *reinterpret_cast<const F8*>(x + j);
            sum[0] += *reinterpret_cast<const F8*>(a + j) * part;
            sum[1] += *reinterpret_cast<const F8*>(b + j) * part;
            sum[2] += *reinterpret_cast<const F8*>(c + j) * part;
            sum[3] += *reinterpret_cast<const F8*>(e + j) * part;
        }
        float factor[4];
        for (int l = 0; l < 4; ++l) factor[l] = problem.gain[r + l] * total(sum[l]);
        for (int64_t j = 0; j < width; j += 8)
            *reinterpret_cast<F8*>(result + j) += (factor[0] * *reinterpret_cast<const F8*>(a + j) +
                                                   factor[1] * *reinterpret_cast<const F8*>(b + j)) +
                                                  (factor[2] * *reinterpret_cast<const F8*>(c + j) +
                                                   factor[3] * *reinterpret_cast<const F8*>(e + j));
    }
    for (int64_t j = 0; j < d; ++j) to[j] = largest * (problem.scale[j] * result[j]);
}
