// Logistic regression with a squared penalty, one model at a time: preconditioned nonlinear conjugate gradients on the
// sparse rows of the model's own records, which stay in the cache of the core, in double precision.
//
// Twin of _descend and _polish in engines/logistic_subsets.py, where the bound on the error of a score is derived too.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "processor.hpp"

#define INLINE inline __attribute__((always_inline))

extern "C" {

// What logistic_subsets.py hands over, field by field. A row is `shift` and its entries: 1 in a column, taken from the
// column that is 1 `instead` where there is one (else -1); and the values of other columns.
struct LeakgaugeLogistic {
    int64_t d, rank, width;                  // the rank is a multiple of 4 and the width, no less than d, of 8
    const double *shift, *penalty, *centre;  // [d]
    const int32_t* instead;                  // [d]
    const int64_t* starts;                   // [n + 1]: of the columns of each row
    const uint16_t* columns;
    const int64_t* value_starts;  // [n + 1]
    const uint16_t* value_columns;
    const double* values;
    const uint8_t* y;                    // [n]
    const float *scale, *basis, *gain;   // [d], [rank, width], [rank]: H^-1 is about S (1 + B' G B) S
    double radius, reach, enough;        // see _score_error
};
}

namespace {

using Problem = LeakgaugeLogistic;
using Doubles = std::vector<double>;

constexpr int ABI = 1;  // raised with every change of what logistic_subsets.py hands over
constexpr int LANES = 4;
constexpr int MOST_STEPS = 300;
constexpr int PATIENCE = 30;      // steps without a gradient smaller than ever
constexpr int MOST_LENGTHS = 20;  // tried along one direction
constexpr double FLAT = 0.3;      // of the slope along a direction may be left

// The records of one model, those with equally many entries in one group: loops of one length follow each other.
struct Rows {
    int64_t n_groups, n_values;
    const int64_t *lengths, *counts;  // [n_groups]
    const uint16_t* columns;
    const int32_t* value_rows;  // [n_values]
    const uint16_t* value_columns;
    const double* values;
    const double *sign, *cost;  // 1 or -1, and what a record costs: 0 for those that fill up the last lanes
};

// A point: scores, what each record pulls and bends, and the first two derivatives of the losses on the way there.
struct Point {
    double *z, *pull, *bend;
    double slope, curve;
};

namespace portable {
#include "logistic.hpp"
}

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace avx2 {
#include "logistic.hpp"
}
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

struct Loops {
    decltype(&portable::dot) dot;
    decltype(&portable::scores) scores;
    decltype(&portable::sums) sums;
    decltype(&portable::move) move;
    decltype(&portable::precondition) precondition;
};

constexpr Loops PORTABLE = {portable::dot, portable::scores, portable::sums, portable::move, portable::precondition};
#if defined(__x86_64__)
constexpr Loops AVX2 = {avx2::dot, avx2::scores, avx2::sums, avx2::move, avx2::precondition};
#endif

// The loops for an instruction set, from 0; null where the processor or the compiler does not have it.
const Loops* loops(int32_t level) {
#if defined(__x86_64__)
    if (level == 1 && processor::AVX2) return &AVX2;
#endif
    return level == 0 ? &PORTABLE : nullptr;
}

int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

double sum_of(const double* from, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += from[i];
    return sum;
}

// Holds the rows of one model.
class OwnRows {
    std::vector<int64_t> lengths_, counts_;
    std::vector<uint16_t> columns_, value_columns_;
    std::vector<int32_t> value_rows_;
    Doubles values_, sign_, cost_;

  public:
    OwnRows(const Problem& problem, const int64_t* rows, int64_t n, const double* costs)
        : sign_(padded(n), 1.0), cost_(padded(n), 0.0) {
        const auto length = [&](int64_t row) { return problem.starts[row + 1] - problem.starts[row]; };
        std::vector<int64_t> sorted(n), place(problem.d + 2, 0);
        for (int64_t i = 0; i < n; ++i) ++place[length(rows[i]) + 1];
        std::partial_sum(place.begin(), place.end(), place.begin());
        for (int64_t i = 0; i < n; ++i) sorted[place[length(rows[i])]++] = rows[i];
        for (int64_t i = 0; i < n; ++i) {
            const int64_t row = sorted[i];
            if (lengths_.empty() || lengths_.back() != length(row)) {
                lengths_.push_back(length(row));
                counts_.push_back(0);
            }
            ++counts_.back();
            columns_.insert(columns_.end(), problem.columns + problem.starts[row],
                            problem.columns + problem.starts[row + 1]);
            for (int64_t at = problem.value_starts[row]; at < problem.value_starts[row + 1]; ++at) {
                value_rows_.push_back(static_cast<int32_t>(i));
                value_columns_.push_back(problem.value_columns[at]);
                values_.push_back(problem.values[at]);
            }
            sign_[i] = problem.y[row] ? 1.0 : -1.0;
            cost_[i] = costs[problem.y[row]];
        }
    }

    Rows view() const {
        return {static_cast<int64_t>(lengths_.size()),
                static_cast<int64_t>(values_.size()),
                lengths_.data(),
                counts_.data(),
                columns_.data(),
                value_rows_.data(),
                value_columns_.data(),
                values_.data(),
                sign_.data(),
                cost_.data()};
    }
};

// The search for the minimum of one model. Vectors of weights are filled up with zeros to whole lanes.
class Search {
    const Problem& problem_;
    const Loops& loops_;
    const Rows rows_;
    const int64_t n_, d_, size_;
    Doubles memory_, table_, along_, new_gradient_, white_, new_white_, direction_, best_;
    std::vector<float> room_;
    Point here_ = {}, there_ = {};

  public:
    Doubles w, gradient;

    Search(const Problem& problem, const Loops& loops, const Rows& rows, int64_t n, const double* weights)
        : problem_(problem), loops_(loops), rows_(rows), n_(padded(n)), d_(problem.d), size_(padded(problem.d)),
          memory_(6 * n_), table_(d_), along_(n_), new_gradient_(size_), white_(size_), new_white_(size_),
          direction_(size_), room_(2 * problem.width), w(size_), gradient(size_) {
        double* part = memory_.data();
        for (double** array : {&here_.z, &here_.pull, &here_.bend, &there_.z, &there_.pull, &there_.bend}) {
            *array = part;
            part += n_;
        }
        std::copy(weights, weights + d_, w.begin());
    }

    double bend() const { return sum_of(here_.bend, n_); }

    double pull() const {
        double sum = 0.0;
        for (int64_t i = 0; i < n_; ++i) sum += std::fabs(here_.pull[i]);
        return sum;
    }

    // Scores and the gradient afresh, without what rounding has gathered.
    void look() {
        loops_.scores(problem_, rows_, w.data(), table_.data(), along_.data());
        loops_.move(rows_, along_.data(), 0.0, along_.data(), n_, here_);
        slopes(here_, gradient);
    }

    int32_t run() {
        look();
        loops_.precondition(problem_, gradient.data(), room_.data(), white_.data());
        double least = HUGE_VAL;
        best_ = w;
        int32_t step = 0;
        for (int32_t since = 0; step < MOST_STEPS && since < PATIENCE; ++step, ++since) {
            const double now = error();
            if (now < least) {
                least = now;
                best_ = w;
                since = 0;
            }
            if (now <= problem_.enough) break;
            if (!falls())
                for (int64_t j = 0; j < d_; ++j) direction_[j] = -white_[j];
            if (!falls())  // rounding has spoilt the preconditioner
                for (int64_t j = 0; j < d_; ++j) direction_[j] = -gradient[j];
            go();
        }
        w = best_;
        look();
        return step;
    }

  private:
    bool falls() const { return loops_.dot(gradient.data(), direction_.data(), size_) < 0.0; }

    void slopes(const Point& point, Doubles& to) {
        loops_.sums(problem_, rows_, point.pull, table_.data(), to.data());
        for (int64_t j = 0; j < d_; ++j) to[j] += problem_.penalty[j] * w[j];
    }

    // One step, and the next direction: Hager and Zhang 2005, (1.3) to (1.5), as the preconditioner sees it.
    void go() {
        loops_.scores(problem_, rows_, direction_.data(), table_.data(), along_.data());
        const double length = flat();
        for (int64_t j = 0; j < d_; ++j) w[j] += length * direction_[j];
        slopes(there_, new_gradient_);
        loops_.precondition(problem_, new_gradient_.data(), room_.data(), new_white_.data());
        double fall = 0.0, turn = 0.0, change = 0.0;
        for (int64_t j = 0; j < d_; ++j) {
            const double y = new_gradient_[j] - gradient[j];
            fall += direction_[j] * y;
            turn += new_white_[j] * y;
            change += (new_white_[j] - white_[j]) * y;
        }
        const double left = loops_.dot(direction_.data(), new_gradient_.data(), size_);
        const double beta = fall > 0.0 ? (turn - 2.0 * change * left / fall) / fall : 0.0;
        for (int64_t j = 0; j < d_; ++j) direction_[j] = beta * direction_[j] - new_white_[j];
        std::swap(here_, there_);
        gradient.swap(new_gradient_);
        white_.swap(new_white_);
    }

    // Goes along the direction to where the objective, which is convex, is nearly flat: Newton's method in a bracket.
    double flat() {
        double pull = 0.0, curve = 0.0, bend = 0.0;
        for (int64_t j = 0; j < d_; ++j) {
            pull += problem_.penalty[j] * w[j] * direction_[j];
            curve += problem_.penalty[j] * direction_[j] * direction_[j];
        }
        for (int64_t i = 0; i < n_; ++i) bend += here_.bend[i] * along_[i] * along_[i];
        const double first = pull + loops_.dot(here_.pull, along_.data(), n_);
        double low = 0.0, high = HUGE_VAL, length = -first / (curve + bend);
        for (int tried = 1;; ++tried) {
            loops_.move(rows_, here_.z, length, along_.data(), n_, there_);
            const double slope = pull + length * curve + there_.slope;
            if (!(std::fabs(slope) > -FLAT * first) || tried == MOST_LENGTHS) return length;
            (slope > 0.0 ? high : low) = length;
            const double most = high < HUGE_VAL ? high : 10.0 * length;
            const double newton = length - slope / (curve + there_.curve);
            length = newton > low && newton < most ? newton : high < HUGE_VAL ? 0.5 * (low + high) : most;
        }
    }

    // No less than the error of any score, but for rounding; _score_error says why.
    double error() const {
        if (problem_.penalty[d_ - 1] != 0.0)
            return std::sqrt(loops_.dot(gradient.data(), gradient.data(), size_)) * problem_.reach;
        const double last = gradient[d_ - 1], level = std::fabs(last), all = bend();
        if (!(level < all)) return HUGE_VAL;
        double squares = 0.0;
        for (int64_t j = 0; j + 1 < d_; ++j) {
            const double along = gradient[j] - last * problem_.centre[j];
            squares += along * along;
        }
        const double slack = -std::log1p(-level / all);
        const double off = std::sqrt(squares) + problem_.radius * level + std::sqrt(level * slack);
        return (problem_.reach + problem_.radius) * off + slack;
    }
};

}  // namespace

extern "C" {

int32_t leakgauge_logistic_abi() { return ABI; }

// Whether the processor has the instructions of a level: 0 portable, 1 AVX2.
int32_t leakgauge_logistic_level(int32_t level) { return loops(level) != nullptr; }

// The minimum for the records `rows` [n], which cost `costs` [2] by their class. Begins at `weights` [d] and leaves the
// best there; `gradient` [d] is that of the objective at these, and `sums` [2] is how much all records together bend it
// and pull. Returns how many steps were taken.
int32_t leakgauge_logistic_minimum(const LeakgaugeLogistic* problem, const int64_t* rows, int64_t n,
                                   const double* costs, double* weights, double* gradient, double* sums,
                                   int32_t level) {
    const OwnRows own(*problem, rows, n, costs);
    Search search(*problem, *loops(level), own.view(), n, weights);
    const int32_t steps = search.run();
    std::copy(search.w.begin(), search.w.begin() + problem->d, weights);
    std::copy(search.gradient.begin(), search.gradient.begin() + problem->d, gradient);
    sums[0] = search.bend();
    sums[1] = search.pull();
    return steps;
}
}
