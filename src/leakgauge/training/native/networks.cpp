// Trains one small network after another: its weights, their moments and the batch stay in the cache of the core.
//
// Twin of engines/networks/batched.py; called by engines/networks/native.py, which checks all sizes and indices. The
// loops are in networks.hpp, and are compiled for several instruction sets; the best that the processor has is taken
// when training starts.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "processor.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

constexpr int ABI = 1;     // raised with every change of what native.py hands over
constexpr int GROUP = 16;  // columns are padded to a multiple of this
constexpr int NARROW = 4;  // outputs up to this many are scalar products
constexpr int MOST_LAYERS = 32;

enum Activation : int32_t { IDENTITY, LOGISTIC, TANH, RELU };
enum Schedule : int32_t { CONSTANT, INVSCALING, ADAPTIVE };

}  // namespace

// What native.py hands over, field by field.
extern "C" {

struct LeakgaugeNetwork {
    double alpha, learning_rate, power_t, momentum, beta_1, beta_2, epsilon, tol, patience;
    int32_t n_layers, activation, adam, schedule, nesterov, batch_size;
};

// How far the training of one model is.
struct LeakgaugeProgress {
    double rate, best_loss, stalled;
    int64_t steps, records, epochs, converged;
};
}

namespace {

using Network = LeakgaugeNetwork;
using Progress = LeakgaugeProgress;

// Columns are those of the weights as stored: [in, columns] in the first layer, [out, columns] in later ones.
struct Layer {
    int64_t in, out, columns, out_columns;
    int64_t weights, biases;  // where they begin in the state
};

struct Shape {
    Activation activation;
    int n_layers;
    Layer layers[MOST_LAYERS];
    int64_t size;  // of the parameters; as many first and second moments follow them in the state
};

// Dense: values alone. Sparse: where each row starts, columns in ascending order, and values, or null if all are 1.
struct Matrix {
    const float* values;
    const int32_t* columns;
    const int64_t* starts;
    const int32_t* y;
};

struct Rule {
    bool adam, nesterov;
    float alpha, rate, momentum, beta_1, rest_1, beta_2, rest_2, epsilon, per_record;
};

struct Work {
    int64_t batch_size, n_words;
    int32_t* rows;     // the records of the batch
    uint64_t* bits;    // [columns of x, n_words]: which records of the batch have something there,
    float* by_column;  // [columns of x, batch_size]: and what
    float* x;          // [batch_size, columns of x]
    float *zeros, *ones, *state;
    float* transposed[MOST_LAYERS];
    float* activations[MOST_LAYERS];
    float* deltas[MOST_LAYERS];
};

// Sums linear + log(factor) over records, with few logarithms. Factors are from 1 to the number of classes.
class Losses {
    double sum_ = 0.0, product_ = 1.0;

   public:
    void add(float linear, double factor) {
        sum_ += linear;
        product_ *= factor;
        if (product_ > 1e200) sum();
    }

    double sum() {
        sum_ += std::log(product_);
        product_ = 1.0;
        return sum_;
    }
};

// While it lives, numbers too small for full precision are 0: the moments of a unit that has died would stay such
// numbers for ever, and arithmetic with them takes many times as long.
class NoSubnormals {
#if defined(__x86_64__)
    const unsigned before_ = _mm_getcsr();

   public:
    NoSubnormals() { _mm_setcsr(before_ | 0x8040); }
    ~NoSubnormals() { _mm_setcsr(before_); }
#endif
};

int64_t padded(int64_t n) { return (n + GROUP - 1) / GROUP * GROUP; }

// ---- the loops, for each instruction set

namespace portable {
constexpr int W = 4, ROWS = 2;
typedef float V __attribute__((vector_size(16), may_alias));
typedef int32_t I __attribute__((vector_size(16)));
#if defined(__aarch64__)
INLINE V madd(V a, V b, V c) { return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
INLINE V root(V x) { return (V)vsqrtq_f32((float32x4_t)x); }
INLINE V larger(V a, V b) { return (V)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
#elif defined(__x86_64__)
INLINE V madd(V a, V b, V c) { return a * b + c; }
INLINE V root(V x) { return _mm_sqrt_ps(x); }
INLINE V larger(V a, V b) { return _mm_max_ps(a, b); }
#else
INLINE V madd(V a, V b, V c) { return a * b + c; }
INLINE V root(V x) { return V{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])}; }
INLINE V larger(V a, V b) { return a > b ? a : b; }
#endif
#include "networks.hpp"
}  // namespace portable

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
constexpr int W = 8, ROWS = 6;
typedef float V __attribute__((vector_size(32), may_alias));
typedef int32_t I __attribute__((vector_size(32)));
INLINE V madd(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INLINE V root(V x) { return _mm256_sqrt_ps(x); }
INLINE V larger(V a, V b) { return _mm256_max_ps(a, b); }
#include "networks.hpp"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f")
#endif
namespace avx512 {
constexpr int W = 16, ROWS = 12;
typedef float V __attribute__((vector_size(64), may_alias));
typedef int32_t I __attribute__((vector_size(64)));
INLINE V madd(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INLINE V root(V x) { return _mm512_sqrt_ps(x); }
INLINE V larger(V a, V b) { return _mm512_max_ps(a, b); }
#include "networks.hpp"
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

typedef double (*TrainBatch)(const Shape&, const Matrix&, float*, const Work&, const Rule&, int64_t);

// The loops for an instruction set, from 0; null where the processor or the compiler does not have it.
TrainBatch loops(int32_t level) {
    if (level == 0) return portable::train_batch;
#if defined(__x86_64__)
    if (level == 1 && processor::AVX2 && processor::FMA) return avx2::train_batch;
    if (level == 2 && processor::AVX512F && loops(1)) return avx512::train_batch;
#endif
    return nullptr;
}

// ---- around them

Shape shape_of(const Network& network, const int32_t* widths) {
    Shape shape = {};
    shape.activation = static_cast<Activation>(network.activation);
    shape.n_layers = network.n_layers;
    for (int l = 0; l < shape.n_layers; ++l) {
        Layer& layer = shape.layers[l];
        layer.in = widths[l];
        layer.out = widths[l + 1];
        layer.out_columns = padded(layer.out);
        layer.columns = l ? padded(layer.in) : layer.out_columns;
        layer.weights = shape.size;
        layer.biases = shape.size + (l ? layer.out : layer.in) * layer.columns;
        shape.size = layer.biases + layer.out_columns;
    }
    return shape;
}

// Hands out parts of one block of memory, each on a cache line of its own; first run without memory, to measure it.
class Carver {
    char* base_;
    int64_t used_ = 0;

   public:
    explicit Carver(char* base) : base_(base) {}

    template <class T>
    T* take(int64_t n) {
        T* part = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
        used_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return part;
    }

    int64_t used() const { return used_; }
};

int64_t carve(char* base, Work& work, const Shape& shape, const Matrix& x, int64_t batch_size, int64_t state_size) {
    Carver carver(base);
    const int64_t d = shape.layers[0].in;
    int64_t widest = 0;
    work.batch_size = batch_size;
    work.n_words = (batch_size + 63) / 64;
    work.state = carver.take<float>(state_size);
    for (int l = 0; l < shape.n_layers; ++l) {
        const Layer& layer = shape.layers[l];
        if (layer.columns > widest) widest = layer.columns;
        if (layer.out_columns > widest) widest = layer.out_columns;
        work.transposed[l] = carver.take<float>(l ? layer.in * layer.out_columns : 0);
        work.activations[l] = carver.take<float>(batch_size * layer.out_columns);
        work.deltas[l] = carver.take<float>(batch_size * layer.out_columns);
    }
    work.zeros = carver.take<float>(widest);
    work.ones = carver.take<float>(widest);
    work.rows = carver.take<int32_t>(batch_size);
    work.bits = carver.take<uint64_t>(x.columns ? d * work.n_words : 0);
    work.by_column = carver.take<float>(x.columns && x.values ? d * batch_size : 0);
    work.x = carver.take<float>(x.columns ? 0 : d * batch_size);
    for (int64_t j = 0; base && j < widest; ++j) work.ones[j] = 1.0f;
    return carver.used();
}

float step_size(const Network& network, const Progress& progress) {
    if (!network.adam) return static_cast<float>(progress.rate);
    const double t = static_cast<double>(progress.steps);
    return static_cast<float>(network.learning_rate * std::sqrt(1.0 - std::pow(network.beta_2, t)) /
                              (1.0 - std::pow(network.beta_1, t)));
}

// Whether training is over; scikit-learn's rule.
void end_epoch(const Network& network, double loss, Progress& progress) {
    ++progress.epochs;
    progress.stalled = loss > progress.best_loss - network.tol ? progress.stalled + 1 : 0;
    if (loss < progress.best_loss) progress.best_loss = loss;
    if (!network.adam && network.schedule == INVSCALING)
        progress.rate = network.learning_rate / std::pow(static_cast<double>(progress.records) + 1.0, network.power_t);
    if (!(progress.stalled > network.patience)) return;
    if (network.adam || network.schedule != ADAPTIVE || progress.rate <= 1e-6) {
        progress.converged = 1;
        return;
    }
    progress.rate /= 5.0;
    progress.stalled = 0;
}

double train_epoch(TrainBatch train_batch, const Network& network, const Shape& shape, const Matrix& x,
                   const int32_t* order, int64_t n_places, int32_t skipped, float* state, const Work& work, Rule& rule,
                   Progress& progress) {
    double loss = 0.0;
    int64_t seen = 0;
    for (int64_t first = 0; first < n_places; first += network.batch_size) {
        int64_t n = 0;
        for (int64_t p = first; p < n_places && p < first + network.batch_size; ++p)
            if (order[p] >= 0 && order[p] != skipped) work.rows[n++] = order[p];
        if (n == 0) continue;
        ++progress.steps;
        rule.rate = step_size(network, progress);
        loss += train_batch(shape, x, state, work, rule, n) * static_cast<double>(n);
        seen += n;
    }
    progress.records += seen;
    return loss / static_cast<double>(seen);
}

}  // namespace

extern "C" {

int32_t leakgauge_networks_abi() { return ABI; }

// Whether the processor has the instructions of a level: 0 portable, 1 AVX2 and FMA, 2 AVX-512.
int32_t leakgauge_networks_level(int32_t level) { return loops(level) != nullptr; }

// Goes on with the training of one model for some epochs, or until it stops. The state holds weights and biases, layer
// by layer, padded, and as many first (and with Adam second) moments. See Matrix for what may be null. Returns 0, or 1
// when there is no memory.
int32_t leakgauge_networks_train(const LeakgaugeNetwork* network, const int32_t* widths, const float* values,
                                 const int32_t* columns, const int64_t* starts, const int32_t* y,
                                 const int32_t* orders, int64_t n_epochs, int64_t n_places, int32_t skipped,
                                 float* state, LeakgaugeProgress* progress, int32_t level) {
    const Shape shape = shape_of(*network, widths);
    const Matrix x = {values, columns, starts, y};
    const int64_t state_size = shape.size * (network->adam ? 3 : 2);
    const int64_t batch_size = network->batch_size < n_places ? network->batch_size : n_places;
    Work work = {};
    const int64_t bytes = carve(nullptr, work, shape, x, batch_size, state_size);
    char* memory = static_cast<char*>(std::calloc(static_cast<size_t>(bytes) + 64, 1));
    if (!memory) return 1;
    carve(memory + (64 - reinterpret_cast<uintptr_t>(memory) % 64) % 64, work, shape, x, batch_size, state_size);
    std::memcpy(work.state, state, state_size * sizeof(float));

    Rule rule = {};
    rule.adam = network->adam;
    rule.nesterov = network->nesterov;
    rule.alpha = static_cast<float>(network->alpha);
    rule.momentum = static_cast<float>(network->momentum);
    rule.beta_1 = static_cast<float>(network->beta_1);
    rule.rest_1 = static_cast<float>(1.0 - network->beta_1);
    rule.beta_2 = static_cast<float>(network->beta_2);
    rule.rest_2 = static_cast<float>(1.0 - network->beta_2);
    rule.epsilon = static_cast<float>(network->epsilon);
    const NoSubnormals guard;
    for (int64_t epoch = 0; epoch < n_epochs && !progress->converged; ++epoch) {
        const double loss = train_epoch(loops(level), *network, shape, x, orders + epoch * n_places, n_places, skipped,
                                        work.state, work, rule, *progress);
        end_epoch(*network, loss, *progress);
    }

    std::memcpy(state, work.state, state_size * sizeof(float));
    std::free(memory);
    return 0;
}
}
